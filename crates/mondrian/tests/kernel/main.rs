//! The Laplace kernel, its features, ridge regression, and the dense algebra under them.

mod dense;
