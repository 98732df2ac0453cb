"""What all problems together came to."""

from collections import Counter, defaultdict


class Summary:
    """Counts of runs by solver and status, faults, and the worst excesses over J in units of rounding."""

    def __init__(self):
        self.problems = self.faulty = 0
        self.seconds = 0.0
        self.statuses = defaultdict(Counter)
        self.worst = {}

    def add(self, result):
        """A problem's result; its faults as lines."""
        self.problems += 1
        self.seconds += result.seconds
        lines = []
        for solver, status, faults, excesses in result.outcomes:
            self.statuses[solver][status] += 1
            lines += [f"{solver} {status}: {fault}" for fault in faults]
            for what, amount in excesses.items():
                if amount > self.worst.get(what, (float("-inf"),))[0]:
                    self.worst[what] = amount, solver, result.index
        self.faulty += bool(lines)
        return lines

    @property
    def runs(self):
        return sum(sum(counts.values()) for counts in self.statuses.values())

    def text(self):
        """The table."""
        names = sorted({status for counts in self.statuses.values() for status in counts})
        rows = [["solver", *names]]
        for solver, counts in sorted(self.statuses.items()):
            rows.append([solver, *(str(counts[name] or "-") for name in names)])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines += [
            f"worst excess, {what}: {amount:.3g} units of rounding ({solver}, problem {index})"
            for what, (amount, solver, index) in sorted(self.worst.items())
        ]
        so_much = f"{self.problems} problems, {self.runs} runs, {self.seconds:.0f} s of processor time"
        lines.append(f"{so_much}, {self.faulty} with faults")
        return "\n".join(lines)
