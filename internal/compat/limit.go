package compat

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Limit is a bound that an environment needs and no wheel's metadata states.
type Limit struct {
	Requirement string // PEP 508: numpy<2
	Why         string
	Source      string
}

// limit is a row of limits.csv.
type limit struct {
	Limit
	torches, cuda, python string
}

func (r *row) limit() limit {
	return limit{
		Limit:   Limit{Requirement: r.get("requirement"), Why: r.get("why"), Source: r.get("source")},
		torches: r.torches("torch"), cuda: r.cuda("cuda"), python: r.opt("python"),
	}
}

// Limits lists the bounds for an environment with that torch, CUDA and Python,
// sorted by requirement.
func Limits(torch, cuda, python string) []Limit {
	var out []Limit
	for _, l := range known().limits {
		if applies(torch, l.torches) && same(l.cuda, cuda) && same(l.python, python) {
			out = append(out, l.Limit)
		}
	}
	slices.SortFunc(out, func(a, b Limit) int { return strings.Compare(a.Requirement, b.Requirement) })
	return out
}

// Conflict is two distributions that cannot share an environment.
type Conflict struct {
	A, B   string // A sorts before B
	Why    string
	Source string
}

// String names both and says why.
func (c Conflict) String() string { return fmt.Sprintf("%s and %s: %s", c.A, c.B, c.Why) }

// clash is a row of conflicts.csv.
type clash struct {
	members     []string
	why, source string
}

func (r *row) clash() clash {
	c := clash{members: r.list("members"), why: r.get("why"), source: r.get("source")}
	for _, m := range c.members {
		_, err := path.Match(m, "")
		r.bad.AddErr(r.pos, err)
	}
	return c
}

// Conflicts lists every pair of distributions, given by normalized name, that
// cannot share one environment, in order of their names.
func Conflicts(dists []string) []Conflict {
	dists = slices.Compact(slices.Sorted(slices.Values(dists)))
	var out []Conflict
	for _, c := range known().conflicts {
		for i, member := range c.members {
			for _, other := range c.members[i+1:] {
				out = append(out, c.between(matching(dists, member), matching(dists, other))...)
			}
		}
	}
	slices.SortFunc(out, func(x, y Conflict) int {
		return cmp.Or(strings.Compare(x.A, y.A), strings.Compare(x.B, y.B))
	})
	return out
}

// match is a distribution and the text that its member's star stood for.
type match struct{ dist, star string }

func matching(dists []string, member string) []match {
	before, after, _ := strings.Cut(member, "*")
	var out []match
	for _, d := range dists {
		if ok, err := path.Match(member, d); ok && err == nil {
			out = append(out, match{d, strings.TrimSuffix(strings.TrimPrefix(d, before), after)})
		}
	}
	return out
}

// between pairs the matches of two members: those with the same star, which
// overwrite each other; where none has, the first of each, so that a mixture is
// named once and not as every product.
func (c clash) between(left, right []match) []Conflict {
	var out []Conflict
	for _, l := range left {
		for _, r := range right {
			if l.star == r.star {
				out = append(out, c.conflict(l, r))
			}
		}
	}
	if len(out) == 0 && len(left) > 0 && len(right) > 0 {
		out = append(out, c.conflict(left[0], right[0]))
	}
	return out
}

func (c clash) conflict(l, r match) Conflict {
	return Conflict{A: min(l.dist, r.dist), B: max(l.dist, r.dist), Why: c.why, Source: c.source}
}
