//! Every example runs, with its own assertions: one for each promise of the README.

macro_rules! examples {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(
            #[path = $file]
            mod $name;

            #[test]
            fn $name() {
                $name::main().unwrap();
            }
        )*
    };
}

examples! {
    process: "../examples/process.rs",
    forest: "../examples/forest.rs",
    online: "../examples/online.rs",
    path: "../examples/path.rs",
    classification: "../examples/classification.rs",
    density: "../examples/density.rs",
    kernel: "../examples/kernel.rs",
    grid: "../examples/grid.rs",
    save: "../examples/save.rs",
}
