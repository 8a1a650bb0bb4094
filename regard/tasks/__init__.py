"""What goes into a model and what comes out: every task of the table, and the objects that use trained runs."""
