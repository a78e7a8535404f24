package secret

import "golang.org/x/sys/windows"

// echoOff switches off the echo of a console.
func echoOff(terminal int) error {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(terminal), &mode); err != nil {
		return err
	}
	return windows.SetConsoleMode(windows.Handle(terminal), mode&^windows.ENABLE_ECHO_INPUT)
}
