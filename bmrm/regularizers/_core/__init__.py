"""What regularizers that are sums over blocks of coordinates share."""
