package objectjson

// Type returns apiVersion and kind of a JSON object, "" for one that is missing, without making the rest
// of it. False says that the library has to be asked, for data is no JSON, no object, or
// these are no texts.
func Type(data []byte) (apiVersion, kind string, ok bool) {
	d := decoder{data: data}
	if d.skip() != '{' || !d.enter() {
		return "", "", false
	}
	ok = d.members(func() bool {
		s, ok := d.quoted()
		if !ok {
			return false
		}
		var to *string
		switch string(s) {
		case "apiVersion":
			to = &apiVersion
		case "kind":
			to = &kind
		}
		if !d.colon() {
			return false
		}
		switch c := d.skip(); {
		case to == nil:
			return d.pass()
		case c == '"':
			*to, ok = d.text()
			return ok
		}
		return d.word("null") // which is as good as nothing
	})
	return apiVersion, kind, ok && d.skip() == end
}

// colon steps over what is between a name and its value.
func (d *decoder) colon() bool {
	if d.skip() != ':' {
		return false
	}
	d.at++
	return true
}

// members goes through an object that has been entered; each reads a member from its name on.
func (d *decoder) members(each func() bool) bool {
	if d.skip() == '}' {
		d.leave()
		return true
	}
	for d.skip() == '"' && each() {
		switch d.skip() {
		case ',':
			d.at++
		case '}':
			d.leave()
			return true
		default:
			return false
		}
	}
	return false
}

// pass steps over a value.
func (d *decoder) pass() bool {
	switch d.skip() {
	case '{':
		return d.enter() && d.members(d.passMember)
	case '[':
		return d.enter() && d.passItems()
	case '"':
		_, ok := d.quoted()
		return ok
	case 't':
		return d.word("true")
	case 'f':
		return d.word("false")
	case 'n':
		return d.word("null")
	}
	_, ok := d.numeral()
	return ok
}

func (d *decoder) passMember() bool {
	_, ok := d.quoted()
	return ok && d.colon() && d.pass()
}

func (d *decoder) passItems() bool {
	if d.skip() == ']' {
		d.leave()
		return true
	}
	for d.pass() {
		switch d.skip() {
		case ',':
			d.at++
		case ']':
			d.leave()
			return true
		default:
			return false
		}
	}
	return false
}
