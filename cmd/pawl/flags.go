package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A value is a flag that is checked when it is read, so that a mistake is reported with the
// flag's name and before anything has happened.
type value[T any] struct {
	text  string
	kind  string // what help calls it
	parse func(string) (T, error)
	into  *T
}

// newValue returns a flag that begins as text, which must be a good one.
func newValue[T any](into *T, text, kind string, parse func(string) (T, error)) *value[T] {
	v := &value[T]{kind: kind, parse: parse, into: into}
	if err := v.Set(text); err != nil {
		panic(fmt.Sprintf("the default of a flag is refused: %v", err))
	}
	return v
}

func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.into, v.text = parsed, text
	}
	return err
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }

// choice adds to cmd a flag that has one of the choices, the first of them by default.
func choice(cmd *cobra.Command, into *string, name, shorthand, usage string, choices ...string) {
	parse := func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("must be one of %s", strings.Join(choices, ", "))
		}
		return s, nil
	}
	cmd.Flags().VarP(newValue(into, choices[0], strings.Join(choices, "|"), parse), name, shorthand, usage)
	err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag exists and is completed once
	}
}

// parseAddress accepts HOST:PORT; no host means every interface, port 0 any free one.
func parseAddress(s string) (string, error) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", errors.New("must be HOST:PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("its port must be a number up to %d", math.MaxUint16)
	}
	return s, nil
}

// parseSize accepts a number of bytes as Kubernetes writes them.
func parseSize(s string) (int64, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0, errors.New("must be a number of bytes such as 512Mi or 2Gi")
	}
	if q.Sign() <= 0 || q.CmpInt64(math.MaxInt64) >= 0 {
		return 0, errors.New("must be more than nothing, and less than 8Ei")
	}
	return q.Value(), nil
}

// parsePeriod accepts a time span.
func parsePeriod(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("must be a time span such as 90s, 15m or 1h30m")
	}
	if d <= 0 {
		return 0, errors.New("must be more than nothing")
	}
	return d, nil
}

// parseLevel accepts how much to log.
func parseLevel(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 10 {
		return 0, errors.New("must be a number from 0 to 10")
	}
	return n, nil
}
