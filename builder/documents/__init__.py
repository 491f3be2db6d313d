"""The site of documents: what is written, and what the code says of itself."""
