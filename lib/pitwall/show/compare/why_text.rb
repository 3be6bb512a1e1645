# frozen_string_literal: true

require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/location"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # The methods that changed between the profiles of two sides, as text: a sentence about the largest change, a table
    # of all changes with their main callers, and the smallest change that would have been detected.
    class WhyText
      METHODS = 12 # rows of the table, by default
      STEPS = 4 # callers named in a line, at most
      KINDS = { wall: "time", cpu: "CPU time", captures: "counts" }.freeze
      # Below this width the table has no column for the time's interval.
      NARROW = 84
      # Below this width the table has no column for the share's change: it has the shares of both sides.
      MODEST = 120
      ALIKE = "alike" # shown for a method whose time is unchanged while its share changed
      private_constant :METHODS, :STEPS, :KINDS, :NARROW, :MODEST, :ALIKE

      # @param per [String] the unit that weights are divided by: "iteration", or "run" for a whole command
      # @param limit [Integer] rows of the table
      # @param warnings [Array<String>] warnings shown first
      # @param hints [Views::Hints] options that notes suggest
      #: (width: Integer, palette: untyped, hints: untyped, ?location: Location, ?per: String, ?limit: Integer,
      #:  ?warnings: Array[String]) -> void
      def initialize(width:, palette:, hints:, location: Location.new, per: "iteration", limit: METHODS, warnings: [])
        @hints = hints
        @warnings = warnings
        @width = width
        @palette = palette
        @location = location
        @per = per
        @limit = limit
      end

      # The text's lines.
      # @param result [Analyse::ProfileChange::Result]
      # @param base [String] name of A
      # @param side [String] name of B
      #: (Analyse::ProfileChange::Result, base: String, side: String) -> Array[String]
      def lines(result, base:, side:)
        return note("Why: not known, #{result.reason}", :yellow) if result.reason

        changed, below = store(result, base, side)
        lines = opening(changed, below)
        lines += ["", *table(changed.first(@limit), :own)] if changed.any?
        if changed.size > @limit
          lines += note("#{Units.things(changed.size - @limit, "more method")} changed (#{@hints.json})")
        end

        lines += ["", *table(below.first(@limit / 2), :total, "changed by what it calls")] if below.any?
        lines + [""] + footnotes(changed, below)
      end

      # Parts of a {MeasuredPage}: sentences above and below tables.
      #: (Analyse::ProfileChange::Result, base: String, side: String) -> Hash[String, untyped]
      def parts(result, base:, side:)
        return { "above" => lines(result, base: base, side: side), "tables" => [], "below" => [] } if result.reason

        changed, below = store(result, base, side)
        tables = [[changed, :own, "Changed by itself"], [below, :total, "Changed by what it calls"]]
        tables = tables.reject { |rows,| rows.empty? }.map { |table| page_table(*table) }
        { "above" => opening(changed, below), "tables" => tables, "below" => footnotes(changed, below) }
      end

      private

      # Stores the arguments for the other methods.
      # @return the methods that changed by themselves, and the methods that changed by what they call
      def store(result, base, side)
        @result = result
        @base = base
        @side = side
        [result.changed, result.changed_below]
      end

      def opening(changed, below)
        @warnings.flat_map { |text| note("! #{text}", :yellow) } + single + headline(changed, below)
      end

      def page_table(rows, which, title)
        cells = rows.map do |row|
          delta = row[which]
          found = timed(delta)
          change = { "text" => delta.lasting ? signed(found.point) : ALIKE, "style" => style(delta)&.to_s }
          [row.name, change, interval(found), *times(delta).map { |ns| ns.zero? ? "–" : duration(ns) },
           share(delta.a_share), share(delta.b_share), words(@location.text(row.path, place(row))),
           *([words(callers(row))] if which == :own)]
        end
        names = [@base, @side].map { |name| Text.shorten_middle(name, 24) }
        heads = ["method", "#{kind}#{"/#{@per}" if iteration?}", "interval", *names,
                 *names.map { |name| "share, #{name}" }, words("where"), *([words("mostly through")] if which == :own)]
        { "title" => title, "heads" => heads, "rows" => cells }
      end

      def words(text) = { "text" => text, "style" => "words" }

      # The time on both sides, in ns: for each iteration, or in a whole recording.
      def times(delta) = iteration? ? [delta.a, delta.b] : delta.times

      # The change of the time with its interval, in ns.
      def timed(delta) = iteration? ? delta.difference : delta.time

      # A colour where the time changed. None where only the share of the whole changed.
      def style(delta)
        return unless delta.lasting

        timed(delta).point.positive? ? :red : :green
      end

      # A change's interval: "−1.20 ms … +3.40 ms".
      def interval(found) = [found.low, found.high].map { |ns| signed(ns) }.join(" … ")

      def kind = KINDS.fetch(@result.weight, @result.weight.to_s)

      def iteration? = @result.unit == :iteration

      # A note that too few recordings give no verdict on which side is faster.
      def single
        return [] unless @result.noise == :within_run

        wholes = [@base, @side].zip(@result.wholes).map do |name, all|
          "#{name} #{all.map { |whole| counts? ? Units.count(whole) : Units.duration(whole) }.join(", ")}"
        end
        once = @result.runs == [1, 1] ? "one run each" : "too few runs"
        threads = ", all threads added up" if @result.threads > 1
        note("#{kind.sub(/\A./, &:upcase)} recorded#{threads}: #{wholes.join(" · ")} " \
             "(#{once}: no verdict on which #{counts? ? "does more" : "is faster"})", :yellow)
      end

      def headline(changed, below)
        row = changed.first
        return note("Why: #{largest(row, :own)}#{through(row)}", :bold) if row&.own&.lasting
        if below.first&.total&.lasting
          return note("Why: #{largest(below.first, :total)}; " \
                      "no method's own #{kind} changed by itself beyond noise", :bold)
        end

        if row || below.any?
          return note("Why: not known: only shares moved, no method's #{kind} changed beyond noise; " \
                      "most in #{shares(row || below.first, row ? :own : :total)}", :bold)
        end

        note("Why: no method's part of the #{kind} changed beyond noise between #{@base} and #{@side}", :bold)
      end

      def largest(row, which)
        delta = row[which]
        return "#{difference(delta.difference.point)}/#{@per} in #{shares(row, which)}" if iteration?

        times = delta.times.map { |ns| duration(ns) }.join(" → ")
        "#{signed(delta.time.point)} #{"of " unless counts?}#{kind} in #{shares(row, which, "#{times}, ")}"
      end

      # A method with its times and shares on both sides: "Cart#sum (self 107 ms → 572 ms, 12.8% → 22.6%)"
      def shares(row, which, times = "")
        delta = row[which]
        "#{row.name} (#{which == :own ? "self" : "with what it calls"} #{times}" \
          "#{percent(delta.a_share)} → #{percent(delta.b_share)}#{presence(row)})"
      end

      def signed(ns) = "#{ns.negative? ? "−" : "+"}#{duration(ns.abs)}"

      def duration(ns) = counts? ? Units.count(ns.round) : Figures.value(ns, "ns", figures: 3)

      def counts? = @result.weight == :captures

      def presence(row)
        { new: ", not seen in #{@base}", gone: ", not seen in #{@side}" }.fetch(row.presence, "")
      end

      def through(row) = callers_fit?(row) ? ", mostly through #{callers(row)}" : ""

      # Whether the callers explain the change. The callers are those of the share's change. When the time changed in
      # the opposite direction, other callers caused that.
      def callers_fit?(row)
        return false if row.callers.empty?
        return true if row.own.time.nil? || !row.own.lasting

        row.own.time.point.positive? == row.own.difference.point.positive?
      end

      def callers(row) = row.callers.first(STEPS).map(&:name).join(" ← ") + (row.callers.size > STEPS ? " ← …" : "")

      def table(rows, which, head = "method")
        names = [@base, @side].map { |name| Text.shorten_middle(name, 12) }
        heads = iteration? ? %w[change interval] : [counts? ? "count" : "time", *%w[interval share].first(more_columns)]
        table = Table.new(heads: [*heads, *names, head], width: @width, palette: @palette, location: @location)
        heading, *body = table.lines(rows.map { |row| table_row(row, row[which]) })
        [heading] + rows.zip(body).flat_map { |row, line| [line, *(which == :own ? route(row) : [])] }
      end

      def table_row(row, delta)
        found = timed(delta)
        change = [delta.lasting ? signed(found.point) : ALIKE, interval(found)]
        change = [*change, difference(delta.difference.point)].first(more_columns + 1) unless iteration?
        numbers = [*change, share(delta.a_share), share(delta.b_share)]
        Table::Row.new(numbers: numbers, name: row.name, place: [row.path, place(row)], style: style(delta))
      end

      # Number of columns that fit beside the change of the time: its interval, and the change of the share.
      def more_columns = [NARROW, MODEST].count { |width| @width >= width }

      # The method's line in B; in A where B doesn't have the method.
      def place(row) = row.lines[1].positive? ? row.lines[1] : row.lines[0]

      def route(row)
        return [] unless callers_fit?(row)

        last = row.callers.first(STEPS).last
        all = (last.change / row.own.difference.point) > 0.995
        text = "↳ #{"#{difference(last.change)} of it " unless all}through #{callers(row)}"
        Text.wrap(text, @width - 2).map { |line| @palette.dim("  #{line}") }
      end

      def footnotes(changed, below)
        [explained(changed), alike(changed, below), noise, *@result.notes].compact.flat_map { |text| note(text) }
      end

      # A note about methods whose share changed only because the rest of the program changed.
      def alike(changed, below)
        return if iteration?
        return if (changed.first(@limit).map(&:own) + below.first(@limit / 2).map(&:total)).all?(&:lasting)

        beyond = "#{" and #{(Analyse::ProfileChange::ONE_RUN * 100).round}%" if @result.noise == :within_run}"
        "#{ALIKE}: as #{counts? ? "many" : "long"} on both sides as far as noise#{beyond} can tell; only its share " \
          "of the whole moved"
      end

      # The part of the whole change that the named methods explain.
      def explained(changed)
        return unless iteration? && changed.any?

        whole = @result.means[1] - @result.means[0]
        named = changed.sum { |row| row.own.difference.point }
        "in these runs, self #{kind} of what is named changed by #{difference(named)}, " \
        "the whole by #{difference(whole)}, per #{@per}"
      end

      def noise
        runs = @result.runs.uniq.join(" and ")
        kind = if @result.noise == :between_runs then "what lies between #{runs} runs of each side"
               else "that of sampling within a recording, and what differs from run to run is not in it"
               end
        "noise is #{kind}; #{tested}#{detectable}"
      end

      # The smallest change that would have been detected with a power of 80%.
      def detectable
        least = @result.detectable
        return unless least
        return "; there are too few samples for any change to be seen in 4 of 5 cases" if !iteration? && least >= 1

        "; a method's own change above #{percent(least)} of the whole would have been seen in 4 of 5 cases"
      end

      def tested
        "#{Units.things(@result.tests, "test")}, corrected together (Holm): " \
          "the chance that any is a false alarm is below #{Figures.share(1 - @result.level)}"
      end

      def share(part) = part.zero? ? "–" : percent(part)

      def percent(part) = part.zero? ? "0%" : format(part < 0.00995 ? "%.2f%%" : "%.1f%%", part * 100)

      # A signed difference of times or shares: "+1.20 ms", "−3.1 points".
      def difference(value)
        return Figures::NOTHING unless value

        points = format(value.abs < 0.00995 ? "%.2f" : "%.1f", value.abs * 100)
        size = iteration? ? Figures.value(value.abs, "ns", figures: 3) : "#{points} points"
        "#{value.negative? ? "−" : "+"}#{size}"
      end

      def note(text, style = :dim) = Text.wrap(text, @width).map { |line| @palette.public_send(style, line) }
    end
  end
end
