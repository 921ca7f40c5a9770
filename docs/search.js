// How search ranks pages: the reference first, then start, tutorials and guides, then measurements and the project's own pages.
// The numbers but `score` are Sphinx's own.
var Scorer = {
  score: ([page, , , , score]) => {
    if (page.startsWith("docs/reference/")) return score + 8;
    return page.startsWith("docs/") && page !== "docs/speed-log" ? score : score - 20;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
