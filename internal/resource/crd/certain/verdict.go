package certain

// A Verdict is what is known about a value.
type Verdict uint8

const (
	Valid   Verdict = iota // the library finds nothing wrong
	Unsure                 // the library has to be asked
	Invalid                // the library finds something wrong
)

// and is the verdict about what has to be both.
func (v Verdict) and(w Verdict) Verdict { return max(v, w) }

// not is the verdict about what must not be.
func (v Verdict) not() Verdict { return Invalid - v }

func verdictOf(ok bool) Verdict {
	if ok {
		return Valid
	}
	return Invalid
}

// unless is Invalid if something is known to be wrong.
func unless(wrong bool) Verdict { return verdictOf(!wrong) }
