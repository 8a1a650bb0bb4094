"""What training minimises: the loss, and the cures for exposure bias."""
