"""Recipe of the built-in CLIP clip-pictures: python -m scripts.clip."""
