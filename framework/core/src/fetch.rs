//! Says where the files of a data set come from; `runner fetch` gets them.
//!
//! `inventory::submit! { Fetch { name: "mnist", how: How::Files { base, files } } }`

/// How to get the data set of this name.
pub struct Fetch {
    /// The data set's name in recipes.
    pub name: &'static str,
    pub how: How,
}

inventory::collect!(Fetch);

/// What it takes to get a data set.
pub enum How {
    /// Files below a common address.
    Files {
        /// The official address, which ends in a slash.
        base: &'static str,
        files: &'static [Remote],
    },
    /// The user must agree to a licence first: what to get, from where, and where to put it. `{folder}` stands for the
    /// folder.
    ByHand(&'static str),
}

/// A file at the official place.
pub struct Remote {
    /// Its name, the last part of its address.
    pub name: &'static str,
    /// The published MD5 checksum, in hexadecimal.
    pub md5: &'static str,
    pub bytes: u64,
    /// For a tar.gz archive, the folder in it that is kept instead.
    pub folder: Option<&'static str>,
}
