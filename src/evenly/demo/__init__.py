"""What `evenly demo` computes and shows: the bias and its cure on toy data, and the method on embedded images."""
