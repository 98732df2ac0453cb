"""What feature maps share."""
