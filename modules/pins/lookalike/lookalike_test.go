package lookalike

import "testing"

func TestNamesThatLookAlike(t *testing.T) {
	for _, pair := range [][2]string{
		{"read_file", "rеad_file"},         // Cyrillic е
		{"read_file", "read_fi1e"},         // a digit
		{"read_file", "read\u200b_file"},   // a character of no width
		{"read_file", "ｒead_file"},         // full width
		{"send_email", "send_ernail"},      // two letters that look like one
		{"list_items", "Iist_items"},       // a capital I
		{"get_order0", "get_orderO"},       // a capital O
		{"search-code", "search‐code"},     // another hyphen
		{"transfer", "trαnsfer"},           // Greek
		{"transfer", "transfer\U000e0020"}, // a tag
		{"read_file", "Read_File"},         // another case
		{"LIST", "list"},                   // the same, with the letter that is a small L
		{"caf\u00e9", "cafe\u0301"},        // another form of one letter
		{"read_file", "𝐫𝐞𝐚𝐝_file"},         // mathematical letters
		{"SEND", "ЅЕΝD"},                   // capitals of two other scripts
	} {
		if Skeleton(pair[0]) != Skeleton(pair[1]) {
			t.Errorf("%q and %q do not look alike: %q, %q", pair[0], pair[1], Skeleton(pair[0]), Skeleton(pair[1]))
		}
	}
	for _, pair := range [][2]string{
		{"read_file", "read-file"}, {"read_file", "read_files"}, {"get_user", "getUser"}, {"поиск", "search"}, {"list", "lists"},
	} {
		if Skeleton(pair[0]) == Skeleton(pair[1]) {
			t.Errorf("%q and %q look alike: %q", pair[0], pair[1], Skeleton(pair[0]))
		}
	}
}
