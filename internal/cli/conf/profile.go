package conf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema/profile"
)

const (
	profileVariable = "DYNMCP_PROFILE"
	profileFile     = ".dynmcp" // which may also be a directory with a config
)

// addProfile adds --profile to a command, and lets the environment and the working directory select a
// profile.
func (f *Flags) addProfile(cmd *cobra.Command) {
	f.chosen = true
	cmd.Flags().StringVar(&f.Profile, "profile", "", "use the servers of this `profile` (default: $"+profileVariable+", the file "+profileFile+", or the config's)")
	_ = cmd.RegisterFlagCompletionFunc("profile", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.Profiles(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
}

// Profiles returns the names of the profiles of the config.
func (f *Flags) Profiles(ctx context.Context) []string {
	all := Flags{Config: f.Config, EnvFile: f.EnvFile, AsWritten: true, Profile: profile.All}
	cfg, err := all.Load(ctx)
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(cfg.Profiles))
}

// Chosen returns the selected profile, or "" if the config selects it.
func (f *Flags) Chosen(ctx context.Context) (string, error) {
	name, _, err := f.profile(ctx)
	return name, err
}

// profile returns the selected profile, and the source of the selection. Both are "" if the config
// selects the profile.
func (f *Flags) profile(ctx context.Context) (name, by string, err error) {
	switch fromEnv := os.Getenv(profileVariable); {
	case f.Profile != "":
		return f.Profile, "--profile", nil
	case !f.chosen:
		return "", "", nil
	case fromEnv != "":
		return fromEnv, profileVariable, nil
	}
	text, err := regular.Read(ctx, profileFile, regular.Small)
	switch name = strings.TrimSpace(string(text)); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, regular.ErrDirectory):
		return "", "", nil
	case err != nil:
		return "", "", err
	case name == "" || strings.ContainsAny(name, "\r\n"):
		return "", "", hint.With(fmt.Errorf("%s does not name a profile", profileFile), "write the name of one into it, on one line")
	}
	return name, profileFile, nil
}

// unknownProfile adds the source of the selection and a hint to an error of an unknown profile.
func unknownProfile(err error, by string) error {
	unknown, ok := errors.AsType[*profile.UnknownError](err)
	switch {
	case !ok:
		return err
	case by != "":
		err = fmt.Errorf("%s: %w", by, err)
	}
	return hint.With(err, "%s", unknown.Hint())
}
