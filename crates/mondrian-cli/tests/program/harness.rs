//! Runs the program in a folder of its own and compares what it says with kept snapshots.
//!
//! `MONDRIAN_BLESS=1 cargo test -p mondrian-cli` writes the snapshots anew; read the diff before committing it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary folder in which commands run.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("a written file");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a readable file")
    }

    /// Runs `mondrian` with arguments separated by spaces.
    pub(crate) fn run(&self, arguments: &str) -> Ran {
        self.run_with(arguments, None)
    }

    /// The same, with text on standard input.
    pub(crate) fn run_with(&self, arguments: &str, input: Option<&[u8]>) -> Ran {
        let mut child = self
            .command(arguments.split_whitespace())
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        if let Some(input) = input {
            // The program may stop reading early: that is its right.
            let _ = child.stdin.take().expect("piped").write_all(input);
        }
        self.ran(&child.wait_with_output().expect("the program ends"))
    }

    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let program = env!("CARGO_BIN_EXE_mondrian");
        let mut command = Command::new(program);
        if ignores_signals() {
            command = Command::new("env");
            command.args(["--default-signal=HUP,INT,TERM", program]);
        }
        command.args(arguments).current_dir(self.folder.path()).env("COLUMNS", "100");
        command
    }

    fn ran(&self, output: &Output) -> Ran {
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&self.folder.path().display().to_string(), "PLACE");
        let status = output.status.code().unwrap_or(-1);
        Ran { status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The names of the files in the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Whether signals that the tests send are ignored by this process, which its children inherit: under `nohup`, or in the
/// background of a script.
fn ignores_signals() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    [1, 2, 15].iter().any(|signal| mask & (1 << (signal - 1)) != 0)
}

impl Ran {
    /// The error is one line that says what and what to do about it, and nothing panicked.
    #[track_caller]
    pub(crate) fn refused(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "exit status; stderr: {}", self.stderr);
        let errors: Vec<&str> = self.stderr.lines().filter(|l| l.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "one line of error in: {}", self.stderr);
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("internal error"), "{}", self.stderr);
        for part in parts {
            assert!(errors[0].contains(part), "{part:?} in {:?}", errors[0]);
        }
        if status == 2 {
            assert!(errors[0].contains("; "), "what to do about it in {:?}", errors[0]);
        }
    }

    #[track_caller]
    pub(crate) fn succeeded(&self) -> &Self {
        assert_eq!(self.status, 0, "stderr: {}", self.stderr);
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("one JSON object on standard output")
    }

    /// Compares with the kept snapshot of this name.
    #[track_caller]
    pub(crate) fn matches(&self, name: &str) {
        let mut found = String::new();
        let _ = write!(found, "exit status {}\n--- stdout\n{}--- stderr\n{}", self.status, self.stdout, self.stderr);
        Self::compare(name, &found);
    }

    /// The same, with every fraction written as `#`: last digits differ between machines.
    #[track_caller]
    pub(crate) fn matches_but_for_fractions(&self, name: &str) {
        let mut found = String::new();
        let _ = write!(found, "exit status {}\n--- stdout\n{}--- stderr\n{}", self.status, self.stdout, self.stderr);
        Self::compare(name, &without_fractions(&found));
    }

    #[track_caller]
    fn compare(name: &str, found: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
        if std::env::var_os("MONDRIAN_BLESS").is_some() {
            std::fs::write(&path, found).expect("a written snapshot");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, kept, "differs from {}; MONDRIAN_BLESS=1 keeps it", path.display());
    }
}

/// Replaces numbers with a point or an exponent, and the spaces before them, which depend on their length.
fn without_fractions(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = if rest[..start].ends_with('-') { start - 1 } else { start };
        let length = rest[start..].find(|c: char| !(c.is_ascii_alphanumeric() || ".-+".contains(c)));
        let end = length.map_or(rest.len(), |n| start + n);
        let word = rest[start..end].trim_end_matches('.');
        let end = start + word.len();
        if word.parse::<f64>().is_ok() && (word.contains('.') || word.contains('e')) {
            out.push_str(rest[..from].trim_end_matches(' '));
            out.push_str(if rest[..from].ends_with(' ') { " #" } else { "#" });
        } else {
            out.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out + rest
}
