"""Pages of every kind that a browser meets, served on loopback from two origins."""
