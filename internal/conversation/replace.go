package conversation

import (
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
)

// vars are the names that a conversation knows: unique, i, and what it captured.
type vars map[string]string

// with returns v and one name more; v stays as it is.
func (v vars) with(name, text string) vars {
	w := maps.Clone(v)
	w[name] = text
	return w
}

// replace puts in what every ${…} of text stands for.
func (v vars) replace(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		inside, after, found := strings.Cut(rest, "}")
		if !found {
			return "", fmt.Errorf("%q has a ${ without a }", text)
		}
		with, err := v.lookup(inside)
		if err != nil {
			return "", err
		}
		out.WriteString(with)
		text = after
	}
}

func (v vars) lookup(inside string) (string, error) {
	if rest, ok := strings.CutPrefix(inside, "repeat "); ok {
		return repeat(rest)
	}
	if rest, ok := strings.CutPrefix(inside, "add "); ok {
		return v.add(rest)
	}
	if text, ok := v[inside]; ok {
		return text, nil
	}
	return "", fmt.Errorf("nothing was captured as ${%s}", inside)
}

// repeat is TEXT N.
func repeat(args string) (string, error) {
	cut := strings.LastIndexByte(args, ' ')
	if cut < 0 {
		return "", fmt.Errorf("${repeat %s} must be ${repeat TEXT N}", args)
	}
	n, err := strconv.Atoi(args[cut+1:])
	if err != nil || n < 0 {
		return "", fmt.Errorf("${repeat %s} must be ${repeat TEXT N}", args)
	}
	text, err := url.PathUnescape(args[:cut])
	if err != nil {
		return "", fmt.Errorf("${repeat %s}: %w", args, err)
	}
	return strings.Repeat(text, n), nil
}

// add is NAME N.
func (v vars) add(args string) (string, error) {
	name, by, _ := strings.Cut(args, " ")
	n, err := strconv.ParseInt(by, 10, 64)
	if err != nil {
		return "", fmt.Errorf("${add %s} must be ${add NAME N}", args)
	}
	text, err := v.lookup(name)
	if err != nil {
		return "", err
	}
	base, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", fmt.Errorf("${add %s}: %s is %q, not a number", args, name, text)
	}
	return strconv.FormatInt(base+n, 10), nil
}
