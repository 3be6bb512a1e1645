# frozen_string_literal: true

require "pitwall/show/terminal/figures"
require "pitwall/show/terminal/location"
require "pitwall/show/terminal/table"
require "pitwall/show/terminal/text"
require "pitwall/show/terminal/units"

module Pitwall
  module Show
    # Which methods changed between the profiles of two sides, for people: the largest change in a sentence, all of them in a
    # table with the way most of each comes, and what would have been seen.
    class WhyText
      METHODS = 12
      # Callers named in a line.
      STEPS = 4
      KINDS = { wall: "time", cpu: "CPU time" }.freeze
      # Too narrow for more than times and shares; for how much the share changed, too, which the two sides tell.
      NARROW = 84
      MODEST = 120
      ALIKE = "alike" # what a method's time was where its share moved
      private_constant :METHODS, :STEPS, :KINDS, :NARROW, :MODEST, :ALIKE

      # @param per [String] what a weight is divided by, where it is: "iteration", or "run" of a whole command
      # @param limit [Integer] rows in the table
      # @param warnings [Array<String>] what to know before reading on
      #: (width: Integer, palette: untyped, ?location: Location, ?per: String, ?limit: Integer, ?warnings: Array[String]) -> void
      def initialize(width:, palette:, location: Location.new, per: "iteration", limit: METHODS, warnings: [])
        @warnings = warnings
        @width = width
        @palette = palette
        @location = location
        @per = per
        @limit = limit
      end

      # @param result [Analyse::ProfileChange::Result]
      # @param base [String] name of A
      # @param side [String] name of B
      #: (Analyse::ProfileChange::Result, base: String, side: String) -> Array[String]
      def lines(result, base:, side:)
        return note("Why: not known, #{result.reason}", :yellow) if result.reason

        changed, below = taken(result, base, side)
        lines = opening(changed, below)
        lines += ["", *table(changed.first(@limit), :own)] if changed.any?
        lines += note("#{Units.things(changed.size - @limit, "more method")} changed (--format json has all)") if changed.size > @limit
        lines += ["", *table(below.first(@limit / 2), :total, "changed by what it calls")] if below.any?
        lines + [""] + footnotes(changed, below)
      end

      # The same for the page: sentences above and below tables, as {MeasuredPage} has them.
      #: (Analyse::ProfileChange::Result, base: String, side: String) -> Hash[String, untyped]
      def parts(result, base:, side:)
        return { "above" => lines(result, base: base, side: side), "tables" => [], "below" => [] } if result.reason

        changed, below = taken(result, base, side)
        tables = [[changed, :own, "Changed by itself"], [below, :total, "Changed by what it calls"]].reject { |rows,| rows.empty? }.map { |table| page_table(*table) }
        { "above" => opening(changed, below), "tables" => tables, "below" => footnotes(changed, below) }
      end

      private

      def taken(result, base, side)
        @result = result
        @base = base
        @side = side
        [result.changed, result.changed_below]
      end

      def opening(changed, below) = @warnings.flat_map { |text| note("! #{text}", :yellow) } + single + headline(changed, below)

      def page_table(rows, which, title)
        cells = rows.map do |row|
          delta = row[which]
          found = timed(delta)
          change = { "text" => delta.lasting ? signed(found.point) : ALIKE, "style" => style(delta)&.to_s }
          [row.name, change, interval(found), *times(delta).map { |ns| ns.zero? ? "–" : duration(ns) }, share(delta.a_share), share(delta.b_share),
           { "text" => @location.text(row.path, place(row)), "style" => "words" }, *([{ "text" => way(row), "style" => "words" }] if which == :own)]
        end
        names = [@base, @side].map { |name| Text.shorten_middle(name, 24) }
        heads = ["method", "#{kind}#{"/#{@per}" if iteration?}", "interval", *names, *names.map { |name| "share, #{name}" }, { "text" => "where", "style" => "words" },
                 *([{ "text" => "mostly through", "style" => "words" }] if which == :own)]
        { "title" => title, "heads" => heads, "rows" => cells }
      end

      # By side, in ns: of an iteration, or of a recording.
      def times(delta) = iteration? ? [delta.a, delta.b] : delta.times

      # How the time changed, with its interval, in ns.
      def timed(delta) = iteration? ? delta.difference : delta.time

      # A colour says that the time changed. What only takes another share of the whole has none.
      def style(delta)
        return unless delta.lasting

        timed(delta).point.positive? ? :red : :green
      end

      # "−1.20 ms … +3.40 ms"
      def interval(found) = [found.low, found.high].map { |ns| signed(ns) }.join(" … ")

      def kind = KINDS.fetch(@result.weight, @result.weight.to_s)

      def iteration? = @result.unit == :iteration

      # Two recordings alone say nothing of which is faster.
      def single
        return [] unless @result.noise == :within_run

        wholes = [@base, @side].zip(@result.wholes).map { |name, all| "#{name} #{all.map { |whole| Units.duration(whole) }.join(", ")}" }
        once = @result.runs == [1, 1] ? "one run each" : "too few runs"
        threads = ", all threads added up" if @result.threads > 1
        note("#{kind.sub(/\A./, &:upcase)} recorded#{threads}: #{wholes.join(" · ")} (#{once}: no verdict on which is faster)", :yellow)
      end

      def headline(changed, below)
        row = changed.first
        return note("Why: #{largest(row, :own)}#{through(row)}", :bold) if row&.own&.lasting
        return note("Why: #{largest(below.first, :total)}; no method's own #{kind} changed by itself beyond noise", :bold) if below.first&.total&.lasting
        return note("Why: not known: only shares moved, no method's #{kind} changed beyond noise; most in #{shares(row || below.first, row ? :own : :total)}", :bold) if row || below.any?

        note("Why: no method's part of the #{kind} changed beyond noise between #{@base} and #{@side}", :bold)
      end

      def largest(row, which)
        delta = row[which]
        return "#{difference(delta.difference.point)}/#{@per} in #{shares(row, which)}" if iteration?

        "#{signed(delta.time.point)} of #{kind} in #{shares(row, which, "#{delta.times.map { |ns| duration(ns) }.join(" → ")}, ")}"
      end

      # "Cart#sum (self 107 ms → 572 ms, 12.8% → 22.6%)"
      def shares(row, which, times = "")
        delta = row[which]
        "#{row.name} (#{which == :own ? "self" : "with what it calls"} #{times}#{percent(delta.a_share)} → #{percent(delta.b_share)}#{presence(row)})"
      end

      def signed(ns) = "#{ns.negative? ? "−" : "+"}#{duration(ns.abs)}"

      def duration(ns) = Figures.value(ns, "ns", figures: 3)

      def presence(row)
        { new: ", not seen in #{@base}", gone: ", not seen in #{@side}" }.fetch(row.presence, "")
      end

      def through(row) = routed?(row) ? ", mostly through #{way(row)}" : ""

      # The way is that of the share; time that went the other way came by another.
      def routed?(row) = row.callers.any? && (row.own.time.nil? || !row.own.lasting || row.own.time.point.positive? == row.own.difference.point.positive?)

      def way(row) = row.callers.first(STEPS).map(&:name).join(" ← ") + (row.callers.size > STEPS ? " ← …" : "")

      def table(rows, which, head = "method")
        names = [@base, @side].map { |name| Text.shorten_middle(name, 12) }
        heads = iteration? ? %w[change interval] : ["time", *%w[interval share].first(spread)]
        table = Table.new(heads: [*heads, *names, head], width: @width, palette: @palette, location: @location)
        heading, *body = table.lines(rows.map { |row| table_row(row, row[which]) })
        [heading] + rows.zip(body).flat_map { |row, line| [line, *(which == :own ? route(row) : [])] }
      end

      def table_row(row, delta)
        found = timed(delta)
        change = [delta.lasting ? signed(found.point) : ALIKE, interval(found)]
        change = [*change, difference(delta.difference.point)].first(spread + 1) unless iteration?
        numbers = [*change, share(delta.a_share), share(delta.b_share)]
        Table::Row.new(numbers: numbers, name: row.name, place: [row.path, place(row)], style: style(delta))
      end

      # How many columns there is room for beside the change of the time: its interval, and how the share changed.
      def spread = [NARROW, MODEST].count { |width| @width >= width }

      # Where it is now, or was.
      def place(row) = row.lines[1].positive? ? row.lines[1] : row.lines[0]

      def route(row)
        return [] unless routed?(row)

        last = row.callers.first(STEPS).last
        all = (last.change / row.own.difference.point) > 0.995
        text = "↳ #{"#{difference(last.change)} of it " unless all}through #{way(row)}"
        Text.wrap(text, @width - 2).map { |line| @palette.dim("  #{line}") }
      end

      def footnotes(changed, below)
        [explained(changed), alike(changed, below), noise, *@result.notes].compact.flat_map { |text| note(text) }
      end

      # A share is of the whole, and moves when the rest changes.
      def alike(changed, below)
        return if iteration? || (changed.first(@limit).map(&:own) + below.first(@limit / 2).map(&:total)).all?(&:lasting)

        beyond = "#{" and #{(Analyse::ProfileChange::ONE_RUN * 100).round}%" if @result.noise == :within_run}"
        "#{ALIKE}: as long on both sides as far as noise#{beyond} can tell; only its share of the whole moved"
      end

      # How much of the whole change is in the methods named.
      def explained(changed)
        return unless iteration? && changed.any?

        whole = @result.means[1] - @result.means[0]
        named = changed.sum { |row| row.own.difference.point }
        "in these runs, self #{kind} of what is named changed by #{difference(named)}, the whole by #{difference(whole)}, per #{@per}"
      end

      def noise
        kind = if @result.noise == :between_runs then "what lies between #{@result.runs.uniq.join(" and ")} runs of each side"
               else "that of sampling within a recording, and what differs from run to run is not in it"
               end
        "noise is #{kind}; #{tested}#{seen}"
      end

      def seen
        return "; there are too few samples for any change to be seen in 4 of 5 cases" if !iteration? && @result.detectable&.>=(1)

        "; a method's own change above #{percent(@result.detectable)} of the whole would have been seen in 4 of 5 cases" if @result.detectable
      end

      def tested
        "#{Units.things(@result.tests, "test")}, corrected together (Holm): " \
          "the chance that any is a false alarm is below #{Figures.share(1 - @result.level)}"
      end

      def share(part) = part.zero? ? "–" : percent(part)

      def percent(part) = part.zero? ? "0%" : format(part < 0.00995 ? "%.2f%%" : "%.1f%%", part * 100)

      # "+1.20 ms", "−3.1 points".
      def difference(value)
        return Figures::NOTHING unless value

        size = iteration? ? Figures.value(value.abs, "ns", figures: 3) : "#{format(value.abs < 0.00995 ? "%.2f" : "%.1f", value.abs * 100)} points"
        "#{value.negative? ? "−" : "+"}#{size}"
      end

      def note(text, style = :dim) = Text.wrap(text, @width).map { |line| @palette.public_send(style, line) }
    end
  end
end
