"""The techniques besides bubblewrap; each imports its SDK only when it is chosen."""
