# frozen_string_literal: true

require "time"
require "pitwall/bench/host"
require "pitwall/cli/support/command"
require "pitwall/cli/support/output_file"
require "pitwall/collect/place"
require "pitwall/errors"
require "pitwall/history"
require "pitwall/show"
require "pitwall/workspace/git"
require "pitwall/workspace/repository"

module Pitwall
  module CLI
    # `pitwall history`: results over time, in SQLite or PostgreSQL.
    class History < Command
      ACTIONS = %w[add show changes export send].freeze
      FORMATS = { "show" => %w[text json markdown html], "changes" => %w[text json markdown],
                  "export" => %w[csv json] }.freeze
      # Options of single actions; the others fit all.
      OWN = { add: %i[suite commit branch at this_host], show: %i[plot last limit mix_hosts host metric format out],
              changes: %i[limit mix_hosts host metric last format out], export: %i[host metric format out],
              send: [] }.freeze
      LIMIT = 20
      LAST = 200
      private_constant :ACTIONS, :FORMATS, :OWN, :LIMIT, :LAST

      class << self
        #: () -> String
        def summary = "keeps results in a database, and says when they changed"

        #: () -> Array[[String, String]]
        def examples
          [
            ["pitwall history add .pitwall/*-bench.jsonl", "save what was measured"],
            ["pitwall history changes", "when did which benchmark become slower or faster?"]
          ]
        end

        #: () -> String
        def usage = "add FILE… | show [CASE…] | changes [CASE…] | export [CASE…] | send"
      end

      #: (OptionParser) -> void
      def define_options(parser)
        parser.on("--store PLACE", "SQLite file or postgres://HOST/DATABASE (default: PITWALL_STORE, or " \
                                   ".pitwall/history.sqlite3)") { |text| @options[:store] = text }
        parser.on("--project NAME", "default: PITWALL_PROJECT, or the repository's name") do |name|
          raise UsageError, "--project: needs a name" if name.strip.empty?

          @options[:project] = name
        end
        parser.separator("")
        parser.separator("add: files of bench and compare, of benchmark-ips, benchmark-driver, ruby-bench")
        parser.on("--commit ID", "what was measured, where the file doesn't say (default: the CI, or HEAD)") do |id|
          @options[:commit] = id
        end
        parser.on("--branch NAME", "its branch") { |name| @options[:branch] = name }
        parser.on("--at TIME", "when (default: the file's time): 2026-11-24T19:05:00Z") do |text|
          @options[:at] = time(text)
        end
        parser.on("--suite NAME", "sets these cases apart from others of the same names") do |name|
          @options[:suite] = name
        end
        parser.on("--this-host", "another tool's file was measured on this machine") { @options[:this_host] = true }
        parser.separator("")
        parser.separator("show, changes, export: CASE is a part of a name")
        define_view_options(parser)
      end

      #: (Array[String]) -> Integer
      def run(words)
        action, *rest = words
        raise UsageError, "what to do? pitwall history #{ACTIONS.join(", ")}" if action.nil?
        unless ACTIONS.include?(action)
          raise UsageError, "no action #{action}#{CLI.guess(action, ACTIONS)}; there are #{ACTIONS.join(", ")}"
        end

        check(action, rest)
        public_send_action(action, rest)
      end

      private

      def define_view_options(parser)
        parser.on("--metric NAME", "wall, cpu, objects… or all (wall)") { |name| @options[:metric] = name }
        parser.on("--host ID", "of one host") { |id| @options[:host] = id }
        parser.on("--mix-hosts", "take all hosts for one") { @options[:mix_hosts] = true }
        parser.on("--plot", "show: a plot of each series") { @options[:plot] = true }
        parser.on("--last N", Integer, "newest results of each series (#{LAST})") { |count| @options[:last] = count }
        parser.on("--limit N", Integer, "rows (#{LIMIT})") { |count| @options[:limit] = count }
        parser.on("--format FORMAT", FORMATS.values.flatten.uniq,
                  "text, json, markdown; show: html; export: csv, json") { |name| @options[:format] = name }
        parser.on("--out FILE", "instead of standard output") { |file| @options[:out] = file }
      end

      def check(action, rest)
        check_limit
        raise UsageError, "--last #{@options[:last]}: must be 1 or more" if @options.fetch(:last, 1) < 1

        foreign = @options.keys - %i[store project] - OWN.fetch(action.to_sym)
        unless foreign.empty?
          raise UsageError, "--#{foreign.first.to_s.tr("_", "-")}: not with history #{action}"
        end
        raise UsageError, "add: name files of results: pitwall history add FILE…" if action == "add" && rest.empty?
        raise UsageError, "#{rest.first}: send takes no words" if action == "send" && rest.any?
        raise UsageError, "--host and --mix-hosts: one or the other" if @options[:host] && @options[:mix_hosts]

        format = @options[:format]
        unless format.nil? || FORMATS.fetch(action).include?(format)
          raise UsageError, "--format #{format}: history #{action} has #{FORMATS.fetch(action).join(", ")}"
        end

        check_page if page?
      end

      def page? = @options[:format] == "html"

      def check_page
        raise UsageError, "--format html: a page is a file: add --out FILE.html" if @options[:out].nil?
        raise UsageError, "--format html: the page has all series: leave out --limit" if @options[:limit]
        raise UsageError, "--format html: the page has all plots: leave out --plot" if @options[:plot]
      end

      def public_send_action(action, rest)
        case action
        when "add" then add(rest)
        when "send" then send_spooled
        when "export" then export(rest)
        else view(action, rest)
        end
      end

      # --- add and send

      def add(files)
        runs = read(files)
        added = Pitwall::History::Store.open(address(create: true), create: true) do |store|
          store.add(project, runs).tap do
            keep_up(store, runs)
            send_waiting(store)
          end
        end
        known = runs.map(&:id).uniq.size - added
        @out.puts("#{things(added, "run")}, #{things(runs.sum { |run| run.figures.size }, "result")} in project " \
                  "#{project}, #{address}#{" (#{things(known, "run")} there already)" if known.positive?}")
        Status::OK
      rescue Pitwall::History::Store::Unavailable => error
        kept(error, runs)
      end

      # Files that don't belong into a history are left out, unless there is no other.
      def read(files)
        unfit = []
        runs = files.flat_map do |file|
          Pitwall::History::Sources.read(file, facts)
        rescue Pitwall::History::Sources::Unfit => error
          unfit << error
          []
        end
        last = unfit.pop if runs.empty?
        unfit.each { |error| @err.puts("pitwall: left out: #{Show::Text.line(error.message)}") }
        last ? raise(last) : runs
      end

      # Results wait in the spool. That is no success: a machine that is thrown away loses its spool.
      def kept(error, runs)
        path = spool.keep(address, project, runs)
        raise CannotMeasure, "not saved: #{error.message}; kept in #{relative(path)}, pitwall history send sends it"
      rescue Pitwall::History::Store::Unavailable => other
        raise CannotMeasure, "not saved: #{error.message}; nor kept: #{other.message}"
      end

      # The new results are saved. What can't be sent of older ones goes on waiting.
      def send_waiting(store)
        spool.send_to(store)
      rescue BadRecording, Pitwall::History::Store::Unavailable => error
        @err.puts("pitwall: older results in #{relative(spool.folder)} wait: #{Show::Text.line(error.message)}")
      end

      # The results are saved. Change points that can't be kept now are found by the next view.
      def keep_up(store, runs)
        Pitwall::History::Analysis.update(store, project, series: runs.flat_map(&:figures).map(&:series_id).uniq)
      rescue Pitwall::History::Store::Unavailable
        nil
      end

      def send_spooled
        unless spool.waiting?(address)
          @out.puts("nothing waits for #{address}")
          return Status::OK
        end

        sent = Pitwall::History::Store.open(address(create: true), create: true) { |store| spool.send_to(store) }
        @out.puts("#{things(sent, "run")} sent to #{address}")
        Status::OK
      end

      def facts
        @facts ||= begin
          facts = Pitwall::History::Sources::Facts.new(
            at: @options[:at], commit: @options[:commit] || ENV["GITHUB_SHA"] || ENV["CI_COMMIT_SHA"] || head,
            branch: @options[:branch] || ENV["GITHUB_REF_NAME"] || ENV["CI_COMMIT_REF_NAME"], suite: @options[:suite]
          )
          facts.host = Pitwall::Bench::Host.facts if @options[:this_host]
          facts
        end
      end

      def head = git("rev-parse", "HEAD")

      # --- views

      def view(action, names)
        open do |store|
          # A page has a search instead of a limit.
          rows = choose(store, names, metric: @options.fetch(:metric, page? ? "all" : "wall"))
          limit = page? ? rows.size : @options.fetch(:limit, LIMIT)
          analysis = Pitwall::History::Analysis
          analysis.update(store, project, series: ids(action, rows, limit)) unless @options[:mix_hosts]
          shown = action == "changes" ? changed(store, rows) : rows
          found = analysis.load(store, project, shown.first(limit), last: @options.fetch(:last, LAST))
          publish(page? ? page(store, found) : render(action, found, shown.size))
        end
        Status::OK
      end

      # `show` needs the changes of the series that it shows, `changes` those of all.
      def ids(action, rows, limit)
        return if action == "changes"

        rows.first(limit).map { |row| row[:series_id] }.uniq
      end

      # Series that have a change, that of the newest one first.
      def changed(store, rows)
        return rows if @options[:mix_hosts]

        newest = store.change_points(project).to_h { |change| [change.values_at(:series_id, :host_id), change] }
        pairs = rows.map { |row| [row, newest[row.values_at(:series_id, :host_id)]] }.select(&:last)
        pairs.sort_by { |_, change| change[:measured_at] }.reverse.map(&:first)
      end

      def page(store, found) = Show::HistoryPage.new(found, project: project, hosts: store.hosts(project)).to_s

      def render(action, found, all)
        case @options[:format]
        when "json" then Show::HistoryJson.new(found, project: project).to_s
        when "markdown"
          action == "changes" ? Show::HistoryMarkdown.new(found).changes : Show::HistoryMarkdown.new(found).table
        else
          text = Show::HistoryText.new(found, project: project, all: all, **terminal)
          action == "changes" ? text.changes : @options[:plot] ? text.plots : text.table
        end
      end

      def terminal
        io = @options[:out] ? File : @out
        { width: width(io), palette: palette(io),
          unicode: !terminal?(io) || Encoding.find("locale") == Encoding::UTF_8 }
      end

      def export(names)
        open do |store|
          kept = choose(store, names, metric: @options.fetch(:metric, "all"))
          wanted = kept.to_h { |row| [row.values_at(:suite, :benchmark, :variant, :metric, :host_id), true] }
          to_out do |out|
            out.puts(Show::HistoryCsv.head) unless @options[:format] == "json"
            store.each_result(project) do |row|
              next unless wanted[row.values_at(:suite, :benchmark, :variant, :metric, :host)]

              out.puts(@options[:format] == "json" ? Show::HistoryCsv.json(row) : Show::HistoryCsv.line(row))
            end
          end
        end
        Status::OK
      end

      # The series that the options and words name.
      # @raise [UsageError] none
      def choose(store, names, metric:)
        filters = { host_id: @options[:host] }.compact
        all = store.series(project, mixed: @options[:mix_hosts] == true, **filters)
        raise UsageError, nothing(store) if all.empty?

        rows = metric == "all" ? all : all.select { |row| row[:metric] == metric }
        if rows.empty?
          raise UsageError, "--metric #{metric}: there are #{all.map { |row| row[:metric] }.uniq.join(", ")}"
        end
        return rows if names.empty?

        rows = rows.select do |row|
          text = row.values_at(:suite, :benchmark, :variant).join(" ")
          names.any? { |name| text.include?(name) }
        end
        rows.empty? ? raise(UsageError, "#{names.join(", ")}: no such case in project #{project}") : rows
      end

      def nothing(store)
        projects = store.projects
        there = projects.empty? ? "it is empty" : "it has #{projects.first(10).join(", ")}"
        return "--host #{@options[:host]}: no results of it in project #{project}" if @options[:host] &&
                                                                                     projects.include?(project)

        "#{address}: no results of project #{project}; #{there} (--project NAME)"
      end

      def open(&block) = Pitwall::History::Store.open(address, &block)

      def publish(text) = to_out { |out| out.puts(text) }

      def to_out(&block)
        return block.call(@out) if @options[:out].nil? || @options[:out] == "-"

        OutputFile.check(@options[:out], [address.path].compact)
        OutputFile.write(@options[:out], &block)
      end

      # --- where

      def address(create: false)
        @address ||= Pitwall::History::Address.parse(@options[:store] || env("PITWALL_STORE") || default_store)
        Collect::Place.own_folder(".pitwall") if create && @address.path == default_store
        @address
      end

      def default_store = File.join(".pitwall", "history.sqlite3")

      def spool = @spool ||= Pitwall::History::Spool.new(env("PITWALL_SPOOL") || File.join(".pitwall", "spool"))

      # The name of the remote repository, which is the same in all clones; else that of the folder.
      def project
        @project ||= @options[:project] || env("PITWALL_PROJECT") || begin
          remote = git("config", "remote.origin.url")
          name = File.basename(remote || Workspace::Repository.find(Dir.pwd)&.top || Dir.pwd, ".git")
          name.gsub(/[^\w.-]/, "-")
        end
      end

      def git(*words)
        found = Workspace::Git.new(Dir.pwd).try(*words).to_s.strip
        found unless found.empty?
      rescue CannotMeasure
        nil
      end

      def env(name) = ENV[name].to_s.empty? ? nil : ENV[name]

      def time(text)
        Time.iso8601(text)
      rescue ArgumentError
        raise UsageError, "--at #{text}: takes a time such as 2026-11-24T19:05:00Z"
      end

      def relative(path) = path.delete_prefix("#{Dir.pwd}/")

      def things(count, noun) = Show::Units.things(count, noun)
    end
  end
end
