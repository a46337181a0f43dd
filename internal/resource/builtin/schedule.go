package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A slot is a field of a schedule: the numbers that it may hold, and their names.
type slot struct {
	first, last int
	names       []string // in the order of the numbers; nil if they have none
}

// slots are the fields of a schedule: minute, hour, day of the month, month, day of the week.
var slots = []slot{
	{0, 59, nil}, {0, 23, nil}, {1, 31, nil},
	{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// wrongSchedule says why nobody could keep a schedule, nil if it is one (rule B62).
func wrongSchedule(schedule string) error {
	if strings.HasPrefix(schedule, "@") {
		return wrongNamedSchedule(schedule)
	}
	said := strings.Fields(schedule)
	if len(said) != len(slots) {
		return fmt.Errorf("expected exactly %d fields, found %d: %s", len(slots), len(said), said)
	}
	for i, text := range said {
		for part := range strings.SplitSeq(text, ",") {
			if part == "" {
				continue // nothing is a list too
			}
			if err := slots[i].wrong(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrongNamedSchedule is about a schedule that has a name, or an interval in place of times.
func wrongNamedSchedule(schedule string) error {
	if interval, ok := strings.CutPrefix(schedule, "@every "); ok {
		if _, err := time.ParseDuration(interval); err != nil {
			return fmt.Errorf("failed to parse duration %s: %w", schedule, err)
		}
		return nil
	}
	if slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, schedule) {
		return nil
	}
	return fmt.Errorf("unrecognized descriptor: %s", schedule)
}

// wrong says why text is none of: a number, two with a hyphen between them, or a star, each perhaps with
// a slash and a step. A number with a step goes on to the last one.
func (s slot) wrong(text string) error {
	span, step, stepped := strings.Cut(text, "/")
	low, high, ranged := strings.Cut(span, "-")
	from, to, err := s.first, s.last, error(nil)
	if low != "*" && low != "?" {
		if from, err = s.number(low); err != nil {
			return err
		}
		switch {
		case strings.Contains(high, "-"):
			return fmt.Errorf("too many hyphens: %s", text)
		case ranged:
			if to, err = s.number(high); err != nil {
				return err
			}
		case !stepped:
			to = from
		}
	}
	by := 1
	if stepped {
		if strings.Contains(step, "/") {
			return fmt.Errorf("too many slashes: %s", text)
		}
		if by, err = whole(step); err != nil {
			return err
		}
	}
	switch {
	case from < s.first:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", from, s.first, text)
	case to > s.last:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", to, s.last, text)
	case from > to:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", from, to, text)
	case by == 0:
		return fmt.Errorf("step of range should be a positive number: %s", text)
	}
	return nil
}

// number is the number that text is, or is the name of.
func (s slot) number(text string) (int, error) {
	if i := slices.Index(s.names, strings.ToLower(text)); i >= 0 {
		return s.first + i, nil
	}
	return whole(text)
}

// whole is the number that text is, which is not less than nothing.
func whole(text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("failed to parse int from %s: %w", text, err)
	case n < 0:
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, text)
	}
	return n, nil
}
