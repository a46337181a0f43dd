package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsTrueOfEachRequestIsWrittenDownSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: drop}))
		var s seldom
		for range 25 { // one each second
			s.say(logger, "no", "n", 1)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		s.say(logger, "no")
		want := "level=ERROR msg=no n=1\nlevel=ERROR msg=no n=1 others=9\nlevel=ERROR msg=no n=1 others=9\nlevel=ERROR msg=no others=4\n"
		if log.String() != want {
			t.Errorf("it says\n%swant\n%s", &log, want)
		}
	})
}
