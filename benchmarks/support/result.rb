# frozen_string_literal: true

module Benchmarks
  # A table of figures: headings, rows of strings.
  Table = Struct.new(:title, :headings, :rows) do
    def to_text
      widths = [headings, *rows].transpose.map { |column| column.map { |cell| cell.to_s.size }.max }
      lines = [headings, *rows].map do |row|
        row.zip(widths).map { |cell, width| cell.to_s.ljust(width) }.join("  ").rstrip
      end
      [title, *lines.map { |line| "  #{line}" }].join("\n")
    end

    def to_markdown
      lines = [headings, headings.map { "---" }, *rows].map { |row| "| #{row.join(" | ")} |" }
      ["#{title}:", "", *lines].join("\n")
    end
  end

  # A figure that was promised. `met` is true, false, or nil where this run cannot tell.
  Goal = Struct.new(:text, :figure, :met) do
    NOT_MEASURED = "not measured"

    #: (String) -> Goal
    def self.not_measured(text) = new(text, NOT_MEASURED, nil)

    # Met or missed only where the whole interval says so.
    #: (String, String, untyped, Float) -> Goal
    def self.at_most(text, figure, estimate, limit)
      met = true if estimate.high <= limit
      met = false if estimate.low > limit
      new(text, figure, met)
    end

    def to_s
      return "#{text}: #{figure}" if figure == NOT_MEASURED

      "#{text}: #{figure}: #{{ true => "met", false => "NOT met", nil => "undecided (more rounds)" }.fetch(met)}"
    end
  end

  # What one benchmark found: tables and goals for people, `data` for programs.
  # cases: those asked for by --cases, or nil where all were
  Result = Struct.new(:tables, :goals, :notes, :data, :name, :cases, :started_at, :seconds, :command, :machine,
                      keyword_init: true) do
    def with(**fields) = self.class.new(**to_h, **fields)

    def to_text
      [*tables.map(&:to_text), *goals.map { |goal| "goal: #{goal}" }, *notes.map { |note| "note: #{note}" }].join("\n")
    end

    # Results under a JIT stand beside the interpreter's: "4.0.5 --yjit".
    #: () -> String
    def self.ruby
      jit = %w[YJIT ZJIT].find { |word| RUBY_DESCRIPTION.include?("+#{word}") }
      jit ? "#{RUBY_VERSION} --#{jit.downcase}" : RUBY_VERSION
    end

    # A run of a few cases, with more rounds, stands beside the run of all.
    def heading = "#{name} (Ruby #{Result.ruby}#{"; only #{cases.join(", ")}" if cases})"

    def to_markdown
      facts = "`#{command}` · #{started_at.strftime("%Y-%m-%d")} · #{machine[:ruby]} · " \
              "#{machine[:cores]} cores, #{machine[:cpu]}, #{machine[:kernel]} · #{seconds} s"
      ["## #{heading}", facts, *tables.map(&:to_markdown), *(list("Goals", goals) if goals.any?),
       *(list("Notes", notes) if notes.any?)]
        .join("\n\n")
    end

    private

    def list(title, items) = "#{title}:\n\n#{items.map { |item| "- #{item}" }.join("\n")}"
  end
end
