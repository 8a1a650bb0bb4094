"""Other people's formats: Hugging Face in and out, CTranslate2 out and as an engine."""
