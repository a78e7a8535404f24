package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"dynmcp/aggregator"
	"dynmcp/schema"
)

// quiet is how long nothing must happen to a config before it is read: editors
// write in several steps.
const quiet = 200 * time.Millisecond

// A reloader puts a config in force again when its files change, or on SIGHUP.
// A config that is wrong changes nothing but the log.
type reloader struct {
	envFile string
	paths   []string      // as they were found at the start
	read    *schema.Files // as they were when they were read last
	agg     *aggregator.Aggregator
	log     *slog.Logger
}

// start follows the config until stop is called, which waits for the end.
// Without watch only SIGHUP counts.
func (r *reloader) start(watch bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var running sync.WaitGroup
	running.Go(func() {
		defer signal.Stop(hangup)
		r.run(ctx, hangup, watch)
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func (r *reloader) run(ctx context.Context, hangup <-chan os.Signal, watch bool) {
	var watched fsnotify.Watcher // whose channels, while they are nil, say nothing
	if watcher := r.watcher(watch); watcher != nil {
		defer watcher.Close()
		watched.Events, watched.Errors = watcher.Events, watcher.Errors
	}
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			r.reload(ctx, true)
		case event := <-watched.Events:
			// Other files count too, since what is watched may be a link that leads
			// through one, but they do not put off what is due.
			if due == nil || slices.Contains(r.files(), event.Name) {
				due = time.After(quiet)
			}
		case err := <-watched.Errors:
			r.log.Warn("changes of the config may be missed", "err", err)
		case <-due:
			due = nil
			r.reload(ctx, false)
		}
	}
}

// watcher watches the directories of the config's files: editors put another
// file in the place of the one there was. It returns nil where nothing is
// watched.
func (r *reloader) watcher(wanted bool) *fsnotify.Watcher {
	if !wanted {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		r.log.Warn("the config is not watched; SIGHUP has it read anew", "err", err)
		return nil
	}
	for _, file := range r.files() {
		if err := watcher.Add(filepath.Dir(file)); err != nil {
			r.log.Warn("the config is not watched; SIGHUP has it read anew", "file", file, "err", err)
		}
	}
	return watcher
}

// files returns what a config is read from, and where links lead.
func (r *reloader) files() []string {
	env := r.envFile
	if env == "" {
		env = ".env"
	}
	var all []string
	for _, file := range append(slices.Clone(r.paths), env) {
		if path, err := filepath.Abs(file); err == nil {
			all = append(all, path)
		}
		if path, err := filepath.EvalSymlinks(file); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				all = append(all, path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// reload reads the files and, if one was changed or always is set, applies them.
// When ctx ends it does not wait for a file system that hangs.
func (r *reloader) reload(ctx context.Context, always bool) {
	next, changed := r.read.Reread(ctx)
	if ctx.Err() != nil || !always && !changed {
		return
	}
	r.read = next
	cfg, err := loadFiles(r.read)
	if err == nil {
		err = r.agg.Apply(cfg)
	}
	if err != nil {
		r.log.Error("the config was not loaded, the last one stays", "err", err)
		return
	}
	r.log.Info("config loaded anew", "servers", len(cfg.Servers))
	for _, warning := range cfg.Warnings {
		r.log.Warn(warning)
	}
	_ = checkCommands(cfg, false, r.log) // it logs; a run that is under way goes on
}
