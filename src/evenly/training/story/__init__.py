"""What `evenly demo` computes: the bias and its cure on toy data, and the method on embedded images, as plain data."""
