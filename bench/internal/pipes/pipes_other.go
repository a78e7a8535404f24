//go:build !linux

package pipes

import "os"

func prepare(*os.File, bool) {}

func read(file *os.File, b []byte) (int, error) { return file.Read(b) }

func writeAll(file *os.File, parts [][]byte) error {
	for _, part := range parts {
		if _, err := file.Write(part); err != nil {
			return err
		}
	}
	return nil
}
