package main

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// A table has a header and rows of as many cells.
type table struct {
	header []string
	rows   [][]string
	shrink int // the column that is cut when the table is too wide
	right  int // columns from this one on hold numbers; 0 is none
}

const (
	columnGap = 2
	minColumn = 8 // what a column keeps on the narrowest terminal
)

// write prints the table: columns as wide as their longest cell, the last one
// not padded.
func (t *table) write(out *terminal) {
	widths := t.widths(out.width)
	for i, row := range append([][]string{t.header}, t.rows...) {
		var line strings.Builder
		for c, cell := range row {
			cell = truncate(oneLine(cell), widths[c])
			padding := strings.Repeat(" ", widths[c]-columns(cell))
			if t.right > 0 && c >= t.right {
				cell, padding = padding+cell, ""
			}
			line.WriteString(cell)
			if c < len(row)-1 {
				line.WriteString(padding + strings.Repeat(" ", columnGap))
			}
		}
		if i == 0 {
			out.paint(dim, line.String())
			out.printf("\n")
			continue
		}
		out.printf("%s\n", line.String())
	}
}

func (t *table) widths(available int) []int {
	widths := make([]int, len(t.header))
	total := columnGap * (len(widths) - 1)
	for c := range widths {
		for _, row := range append(t.rows, t.header) {
			widths[c] = max(widths[c], columns(oneLine(row[c])))
		}
		total += widths[c]
	}
	if available > 0 && total > available {
		widths[t.shrink] = max(min(minColumn, widths[t.shrink]), widths[t.shrink]-(total-available))
	}
	return widths
}

// oneLine folds white space, line breaks too, into single spaces.
func oneLine(text string) string { return visible(strings.Join(strings.Fields(text), " ")) }

// columns returns how many columns of a terminal a text takes.
func columns(text string) int { return displaywidth.String(text) }

// truncate cuts text to at most max columns, the last three of them dots if there
// is room for more than dots.
func truncate(text string, max int) string {
	switch {
	case columns(text) <= max:
		return text
	case max <= 3:
		return displaywidth.TruncateString(text, max, "")
	}
	return displaywidth.TruncateString(text, max, "...")
}
