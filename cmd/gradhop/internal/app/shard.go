package app

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// ShardFlag defines the flag --shard, for a part of a run's chains.
func ShardFlag(fs *pflag.FlagSet, text *string) {
	fs.StringVar(text, "shard", "", "run only part `K/N` of --chains, numbered from 0: 3/8 is the fourth of eight")
}

// Shard returns the chains of part K of N, as --chain-ids takes them. Text is K/N.
func Shard(text string, chains int) (string, error) {
	k, n, err := parseShard(text)
	if err == nil && n > chains {
		err = Usagef("--shard %s: %d parts of %d chains leave some without chains; give --chains", text, n, chains)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%d", k*chains/n, (k+1)*chains/n-1), nil
}

func parseShard(text string) (k, n int, err error) {
	part, of, _ := strings.Cut(text, "/")
	k, err = strconv.Atoi(part)
	n, err2 := strconv.Atoi(of)
	if err != nil || err2 != nil || k < 0 || k >= n {
		return 0, 0, Usagef("--shard %q: want K/N with K from 0 to N-1, such as 3/8", text)
	}
	return k, n, nil
}
