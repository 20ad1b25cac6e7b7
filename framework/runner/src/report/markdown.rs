//! Writes a report's tables, warnings and states as Markdown.

use super::page::{Block, Cell, Page, Table};

pub fn page(page: &Page) -> String {
    let mut text = format!("# {}\n", escape(&page.title));
    for line in &page.summary {
        text += &format!("\n{}\n", escape(line));
    }
    for section in &page.sections {
        let inside = blocks(&section.blocks);
        // What consists of pictures alone has nothing to say here.
        if !inside.is_empty() {
            text += &format!("\n## {}\n{inside}", section.title);
        }
    }
    text
}

fn blocks(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut heading = None;
    for block in blocks {
        let inside = match block {
            Block::Heading(title) => {
                heading = Some(format!("\n### {}\n", escape(title)));
                continue;
            }
            Block::Text(line) => format!("\n{}\n", escape(line)),
            Block::Warnings(warnings) => {
                let items: String = warnings
                    .iter()
                    .map(|warning| format!("> - {}\n", escape(warning)))
                    .collect();
                format!("\n{items}")
            }
            Block::Table(table) => self::table(table),
            Block::Code(code) => format!("\n```yaml\n{}\n```\n", code.trim_end().replace("```", "` ` `")),
            Block::Folded(summary, inside) => {
                let inside = self::blocks(inside);
                if inside.is_empty() {
                    continue;
                }
                format!(
                    "\n<details>\n<summary>{}</summary>\n{inside}\n</details>\n",
                    super::html::escape(summary)
                )
            }
            Block::Charts(_) | Block::Pictures(_) | Block::Remark(_) => continue,
        };
        text += &heading.take().unwrap_or_default();
        text += &inside;
    }
    text
}

fn table(table: &Table) -> String {
    let mut text = format!("\n{}\n\n", escape(&table.caption));
    let head: Vec<_> = table
        .head
        .iter()
        .map(|head| with_aside(escape(&head.text), &head.aside))
        .collect();
    text += &line(&head);
    let rule: Vec<_> = table
        .head
        .iter()
        .map(|head| if head.numeric { "---:" } else { "---" }.to_owned())
        .collect();
    text += &line(&rule);
    for row in &table.rows {
        let cells: Vec<_> = row.iter().map(cell).collect();
        text += &line(&cells);
    }
    text
}

fn cell(cell: &Cell) -> String {
    let text = escape(&cell.text);
    let text = if cell.bold { format!("**{text}**") } else { text };
    with_aside(text, &cell.aside)
}

fn with_aside(text: String, aside: &str) -> String {
    if aside.is_empty() {
        return text;
    }
    format!("{text} ({})", escape(aside))
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Text that neither ends a cell nor becomes markup.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '`' | '[' | ']' => {
                safe.push('\\');
                safe.push(c);
            }
            '<' => safe += "&lt;",
            '&' => safe += "&amp;",
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_in_its_cell() {
        assert_eq!(escape("a|b\n*c* <d> `e`"), "a\\|b \\*c\\* &lt;d> \\`e\\`");
    }
}
