package house

import (
	"log"
	"os"
	"testing"
)

// The tests look at the project from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		log.Fatal(err)
	}
	m.Run()
}
