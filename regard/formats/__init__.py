"""Other people's formats: Hugging Face, CTranslate2, SentencePiece."""
