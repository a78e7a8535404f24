package terminal

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// A Table is printed in aligned columns. Each row has as many cells as the header.
type Table struct {
	Header []string
	Rows   [][]string
	Shrink int // the column that is truncated if the table is too wide
	Right  int // the first of the columns to align right; 0 for none
}

const (
	columnGap = 2
	minColumn = 8 // minimal width of the truncated column
)

// Write prints the table. Columns are as wide as their longest cell.
func (t *Table) Write(out *Writer) {
	widths := t.widths(out.Width)
	for i, row := range append([][]string{t.Header}, t.Rows...) {
		var line strings.Builder
		for c, cell := range row {
			cell = Truncate(OneLine(cell), widths[c])
			padding := strings.Repeat(" ", widths[c]-Columns(cell))
			if t.Right > 0 && c >= t.Right {
				cell, padding = padding+cell, ""
			}
			line.WriteString(cell)
			if c < len(row)-1 {
				line.WriteString(padding + strings.Repeat(" ", columnGap))
			}
		}
		if i == 0 {
			out.Paint(Dim, line.String())
			out.Printf("\n")
			continue
		}
		out.Printf("%s\n", line.String())
	}
}

func (t *Table) widths(available int) []int {
	widths := make([]int, len(t.Header))
	total := columnGap * (len(widths) - 1)
	for c := range widths {
		for _, row := range append(t.Rows, t.Header) {
			widths[c] = max(widths[c], Columns(OneLine(row[c])))
		}
		total += widths[c]
	}
	if available > 0 && total > available {
		widths[t.Shrink] = max(min(minColumn, widths[t.Shrink]), widths[t.Shrink]-(total-available))
	}
	return widths
}

// OneLine replaces white space, including line breaks, with single spaces.
func OneLine(text string) string { return visible(strings.Join(strings.Fields(text), " ")) }

// Columns returns the width of a text in columns of a terminal.
func Columns(text string) int { return displaywidth.String(text) }

// Truncate truncates text to max columns, and ends it with three dots if they fit.
func Truncate(text string, max int) string {
	switch {
	case Columns(text) <= max:
		return text
	case max <= 3:
		return displaywidth.TruncateString(text, max, "")
	}
	return displaywidth.TruncateString(text, max, "...")
}
