//! Writes a report as one HTML page that needs nothing else: no network, no scripts.

use super::page::{Block, Cell, Page, Table};
use super::pictures::PictureTable;

const STYLE: &str = include_str!("style.css");

/// Texts up to this length are not broken into lines.
const ONE_LINE: usize = 42;

/// Text as it may stand between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            '\n' | '\t' => safe.push(c),
            // Neither HTML nor anybody's eyes know what to do with them.
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

pub fn page(page: &Page) -> String {
    let mut writer = Writer {
        html: String::new(),
        charts: 0,
    };
    writer.page(page);
    writer.html
}

struct Writer {
    html: String,
    charts: usize,
}

impl Writer {
    fn page(&mut self, page: &Page) {
        let title = escape(&page.title);
        self.html += &format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
        );
        for line in &page.summary {
            self.html += &format!("<p>{}</p>\n", escape(line));
        }
        self.html += "<nav aria-label=\"Sections\">\n";
        for section in &page.sections {
            self.html += &format!("<a href=\"#{}\">{}</a>\n", section.id, escape(section.title));
        }
        self.html += "</nav>\n</header>\n<main>\n";
        for section in &page.sections {
            self.html += &format!(
                "<section id=\"{}\">\n<h2>{}</h2>\n",
                section.id,
                escape(section.title)
            );
            self.blocks(&section.blocks);
            self.html += "</section>\n";
        }
        self.html += "</main>\n</body>\n</html>\n";
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Heading(text) => self.html += &format!("<h3>{}</h3>\n", escape(text)),
                Block::Text(text) | Block::Remark(text) => self.html += &format!("<p>{}</p>\n", escape(text)),
                Block::Code(text) => {
                    self.html += &format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(text));
                }
                Block::Warnings(warnings) => {
                    let items: String = warnings
                        .iter()
                        .map(|warning| format!("<li>{}</li>\n", escape(warning)))
                        .collect();
                    self.html += &format!("<ul class=\"warnings\">\n{items}</ul>\n");
                }
                Block::Table(table) => self.table(table),
                Block::Charts(charts) => {
                    self.html += "<div class=\"charts\">\n";
                    for chart in charts {
                        self.charts += 1;
                        self.html += &chart.to_html(&format!("chart{}", self.charts));
                    }
                    self.html += "</div>\n";
                }
                Block::Pictures(pictures) => self.pictures(pictures),
                Block::Folded(summary, blocks) => {
                    self.html += &format!("<details>\n<summary>{}</summary>\n", escape(summary));
                    self.blocks(blocks);
                    self.html += "</details>\n";
                }
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let caption = escape(&table.caption);
        self.html += &format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n\
             <caption>{caption}</caption>\n<thead><tr>"
        );
        for head in &table.head {
            let class = if head.numeric { " class=\"number\"" } else { "" };
            self.html += &format!(
                "<th scope=\"col\"{class}>{}{}</th>",
                escape(&head.text),
                aside(&head.aside)
            );
        }
        self.html += "</tr></thead>\n<tbody>\n";
        for row in &table.rows {
            self.html += "<tr>";
            for (cell, head) in row.iter().zip(&table.head) {
                self.cell(cell, head.numeric);
            }
            self.html += "</tr>\n";
        }
        self.html += "</tbody>\n</table>\n</div>\n";
    }

    fn cell(&mut self, cell: &Cell, numeric: bool) {
        let mut classes = Vec::new();
        if numeric {
            classes.push("number");
        }
        if cell.alarming {
            classes.push("alarming");
        }
        if cell.text.chars().count() <= ONE_LINE {
            classes.push("line-kept");
        }
        let text = escape(&cell.text);
        let text = if cell.bold {
            format!("<strong>{text}</strong>")
        } else {
            text
        };
        self.html += &format!(
            "<td class=\"{}\">{text}{}</td>",
            classes.join(" "),
            aside(&cell.aside)
        );
    }

    fn pictures(&mut self, pictures: &PictureTable) {
        let caption = escape(&pictures.caption);
        if pictures.columns.is_empty() {
            self.html += "<div class=\"pictures\">\n";
            for row in &pictures.rows {
                for picture in row.pictures.iter().flatten() {
                    self.html += &format!(
                        "<figure><img src=\"{}\" width=\"{}\" height=\"{}\" alt=\"{caption}: {}\"><figcaption>{}</figcaption></figure>\n",
                        picture.uri,
                        picture.width,
                        picture.height,
                        escape(&row.label),
                        escape(&row.label)
                    );
                }
            }
            self.html += "</div>\n";
            return;
        }
        self.html += &format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table class=\"grid\" style=\"--columns: {}\">\n\
             <caption class=\"unseen\">{caption}</caption>\n<thead><tr><td></td>",
            pictures.columns.len()
        );
        for column in &pictures.columns {
            self.html += &format!("<th scope=\"col\">{}</th>", escape(column));
        }
        self.html += "</tr></thead>\n<tbody>\n";
        for row in &pictures.rows {
            self.html += &format!("<tr><th scope=\"row\">{}</th>", escape(&row.label));
            for (picture, column) in row.pictures.iter().zip(&pictures.columns) {
                match picture {
                    Some(picture) => {
                        self.html += &format!(
                            "<td><img src=\"{}\" width=\"{}\" height=\"{}\" alt=\"{caption}: {}, {}\"></td>",
                            picture.uri,
                            picture.width,
                            picture.height,
                            escape(&row.label),
                            escape(column)
                        );
                    }
                    None => self.html += "<td class=\"none\">–</td>",
                }
            }
            self.html += "</tr>\n";
        }
        self.html += "</tbody>\n</table>\n</div>\n";
    }
}

fn aside(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("<small>{}</small>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("<b a=\"1\" c='2'>&\u{1b}[0m\n"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\u{fffd}[0m\n"
        );
    }
}
