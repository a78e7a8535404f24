package engine

import "testing"

// A property stands for the same name, or for the only one that looks like it as an identifier.
func TestNamesOfProperties(t *testing.T) {
	names := []string{"get-file", "get_file", "read-file", "a-b", "a.b", "x y$", "é"}
	for property, want := range map[string]int{
		"get-file": 0, "get_file": 1, "read_file": 2, "read-file": 2, "a_b": -1, "a.b": 4, "x_y$": 5, "_": 6, "é": 6, "none": -1, "": -1,
	} {
		if got := Named(property, names); got != want {
			t.Errorf("%q: got %d, want %d", property, got, want)
		}
	}
	if got := Named("a", nil); got != -1 {
		t.Errorf("of no names: got %d", got)
	}
}
