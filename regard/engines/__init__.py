"""Other ways to run a trained model: CTranslate2."""
