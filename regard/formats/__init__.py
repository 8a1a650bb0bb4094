"""Import from and export to other formats: Hugging Face and CTranslate2."""
