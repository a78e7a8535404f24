package wire

func overwrite(text []byte) {
	for i := range text {
		text[i] = 0xee
	}
}
