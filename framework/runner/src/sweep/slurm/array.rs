//! Groups members into job arrays: one array asks the same for all its tasks, and is not longer than the cluster allows.

use crate::recipe::SlurmSection;

/// Members that are submitted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<'a> {
    /// In the names of its files.
    pub number: u32,
    pub section: &'a SlurmSection,
    /// Task i runs member i.
    pub members: Vec<&'a str>,
}

/// The arrays for members given by name and section, in their order, numbered from `first`.
pub fn arrays<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a SlurmSection)>,
    longest: usize,
    first: u32,
) -> Vec<Array<'a>> {
    let mut groups: Vec<(&SlurmSection, Vec<&str>)> = Vec::new();
    for (name, section) in members {
        match groups.iter_mut().find(|(other, _)| *other == section) {
            Some((_, names)) => names.push(name),
            None => groups.push((section, vec![name])),
        }
    }
    let chunks = groups
        .iter()
        .flat_map(|(section, names)| names.chunks(longest.max(1)).map(|chunk| (*section, chunk)));
    chunks
        .zip(first..)
        .map(|((section, members), number)| Array {
            number,
            section,
            members: members.to_vec(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_grouped_by_what_they_ask_for_and_cut_by_the_limit() {
        let cpu = SlurmSection::default();
        let gpu = SlurmSection {
            gpus: Some(1),
            ..cpu.clone()
        };
        let members = [("a", &cpu), ("b", &gpu), ("c", &cpu), ("d", &cpu), ("e", &gpu)];
        let found = arrays(members, 2, 4);
        let rows: Vec<_> = found
            .iter()
            .map(|array| (array.number, array.section.gpus, array.members.clone()))
            .collect();
        let expected = [
            (4, None, vec!["a", "c"]),
            (5, None, vec!["d"]),
            (6, Some(1), vec!["b", "e"]),
        ];
        assert_eq!(rows, expected);
        assert_eq!(arrays([], 2, 1), []);
    }
}
