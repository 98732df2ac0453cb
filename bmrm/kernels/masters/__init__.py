"""Small quadratic and linear programs, kept hot between solutions."""
