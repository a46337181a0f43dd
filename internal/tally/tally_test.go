package tally

import (
	"strconv"
	"testing"
)

func TestStands(t *testing.T) {
	for _, c := range []struct {
		name       string
		made       []int
		unanswered int
		at         int
		want       string
	}{
		{"nobody counted", nil, 0, 0, ""},
		{"all were acknowledged", []int{2, 1, 3}, 0, 3, ""},
		{"one was not answered, and was made", []int{1, 3}, 1, 3, ""},
		{"one was not answered, and was not made", []int{1, 2}, 1, 2, ""},
		{"one was lost", []int{1, 2, 3}, 0, 2, "3 was told that it had counted up to 3, and it is at 2"},
		{"one was lost and another took its place", []int{1, 2, 2}, 0, 2, "2 and 2 were both told that they had counted up to 2"},
		{"one was lost where one was made that was not answered", []int{1, 2, 2}, 1, 3, "2 and 2 were both told that they had counted up to 2"},
		{"one was refused, and was made", []int{1}, 0, 2, "it was at 0, 1 increments were acknowledged and 0 not answered, and it is at 2"},
		{"one that was not answered was made twice", []int{1}, 1, 3, "it was at 0, 1 increments were acknowledged and 1 not answered, and it is at 3"},
		{"a number that was never there", []int{-1}, 0, 0, "-1 was told that it had counted up to -1, and it was at 0 before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var counter Counter
			for _, n := range c.made {
				counter.Made(n, strconv.Itoa(n))
			}
			for range c.unanswered {
				counter.Unanswered()
			}
			if err := counter.Stands(c.at); text(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}
			if counter.Total() != len(c.made) {
				t.Errorf("%d in all", counter.Total())
			}
		})
	}
}

// What was open when it was judged is not open any more.
func TestItGoesOnFromWhereItStood(t *testing.T) {
	var c Counter
	c.Made(1, "a")
	c.Unanswered()
	c.Unanswered()
	if err := c.Stands(2); err != nil {
		t.Fatal(err)
	}
	if want := "it was at 2, 0 increments were acknowledged and 0 not answered, and it is at 3"; text(c.Stands(3)) != want {
		t.Errorf("%v, want %s", c.Stands(3), want)
	}
	if want := "it was at 2, 0 increments were acknowledged, and it is at 1"; text(c.Stands(1)) != want {
		t.Errorf("%v, want %s", c.Stands(1), want)
	}
	c.Made(3, "a")
	c.Made(2, "b")
	if want := "b was told that it had counted up to 2, and it was at 2 before"; text(c.Stands(3)) != want {
		t.Errorf("%v, want %s", c.Stands(3), want)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
