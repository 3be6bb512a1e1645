# frozen_string_literal: true

require "shellwords"

module Pitwall
  module Views
    # Commands to type after a table of methods: who calls the hottest, the tree, the lines of the heaviest file.
    class NextSteps
      OBJECTS = %i[objects bytes gc].freeze
      # Columns of a command without the names in it.
      COMMAND = 30
      private_constant :OBJECTS, :COMMAND

      #: (Drawing) -> void
      def initialize(drawing)
        @drawing = drawing
        @report = drawing.report
      end

      # Options after `pitwall report FILE`, the likeliest first.
      #: () -> Array[String]
      def commands
        found = [*tests, *callers, *requests, "--tree#{same_part}", "#{closer}#{same_part}"]
        found << "--view gc" if Show::MethodsText.noteworthy_gc?(@report) && labels.empty?
        found.map { |options| "pitwall report #{@drawing.file} #{options}" }
      end

      private

      def closer = @report.summary.traced? ? "--bottom-up" : lines

      def tests = @report.tests.any? && !request? ? ["--view tests#{labels}"] : []

      def requests
        @report.tests.empty? && @report.request_count.to_i.positive? && !request? ? ["--view requests#{labels}"] : []
      end

      def request? = !@report.query.request.nil?

      # Left out where it would not run as it stands, or would have to be cut.
      def callers
        hottest = @report.running.flat.find { |row| row.method.kind < 2 && !@report.waits?(row.method) }&.method
        plain = hottest&.name&.match?(/\A[\w:#.?!]+\z/) && room?(hottest.name)
        plain ? ["--callers #{quote(hottest.name)}#{same_part}"] : []
      end

      # Of the application's heaviest file.
      def lines
        file = @report.heaviest_file
        words = file && Shellwords.escape(@drawing.location.text(file, 0))
        words && room?(words) ? "--lines #{words}" : "--view lines"
      end

      def room?(words) = @drawing.file.size + words.size + COMMAND <= @drawing.width

      # What was asked for, so that what is suggested shows the same part. Where objects were followed, there may be no
      # times to fall back on.
      def same_part
        weight = " --weight #{@report.weight}" if OBJECTS.include?(@report.weight)
        "#{weight}#{labels}#{" --only-mine" if @report.query.only_mine}"
      end

      def labels
        (@report.query.selection.labels || {}).map { |pair| " --label #{quoted(pair.join("="))}" }.join
      end

      def quoted(word)
        return word if word.match?(/\A[\w.:=#-]+\z/)

        word.include?("'") ? Shellwords.escape(word) : "'#{word}'"
      end

      # A # starts a comment only at the start of a word; a ! is history in an interactive shell.
      def quote(name) = name.match?(/[!?]/) ? "'#{name}'" : name
    end
  end
end
