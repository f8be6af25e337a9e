"""The files and pictures of one run, and what the HTML files about it have in common."""
