# frozen_string_literal: true

require "json"
require "pitwall/show/boot/uses_view"
require "pitwall/show/boot/words"

module Pitwall
  module Show
    # A boot as a JSON object. `features` are the loads in the order in which they began; `parent` is the index of
    # another feature, or null. All times are in ns, all sizes in bytes.
    class BootJson
      SCHEMA = "pitwall/boot-1"

      # @param hints [Views::Hints] commands
      #: (Analyse::Boot, Analyse::Summary, hints: untyped, ?limit: Integer?, ?warnings: Array[untyped]) -> void
      def initialize(boot, summary, hints:, limit: nil, warnings: [])
        @boot = boot
        @summary = summary
        @hints = hints
        @limit = limit
        @warnings = warnings
      end

      # The JSON text, without a newline at its end.
      #: () -> String
      def to_s = JSON.generate(to_h)

      # @api private
      #: () -> Hash[String, untyped]
      def to_h
        header = @summary.headers.first
        count, spent = @boot.repeats
        { "schema" => SCHEMA, "boot" => figures, "ended_by" => @boot.ended_by, "before" => @boot.sizes_before,
          "after" => @boot.sizes, "parts" => rows(@boot.parts), "gems" => rows(@boot.gems), "advice" => advice,
          "features" => features, "total" => @boot.nodes.size, "failed" => @boot.failed.size,
          "repeats" => { "count" => count, "wall_ns" => spent }, "used" => BootUsesView.new(@boot).json,
          "late" => @boot.late.size, "lost" => @boot.lost, "unwatched" => @boot.unwatched,
          "caches" => caches, "bootsnap" => @boot.bootsnap?, "program" => @summary.programs.first,
          "ruby" => header&.ruby || {}, "host" => header&.host || {}, "pids" => @summary.headers.map(&:pid).uniq,
          "warnings" => @warnings }
      end

      private

      def figures
        { **named(@boot.figures), "before_ns" => @boot.before_ns, "outside_ns" => @boot.outside_ns,
          "pitwall_ns" => @boot.own_ns }
      end

      # {wall: 1, objects: 2} → {"wall_ns" => 1, "objects" => 2}
      def named(figures)
        figures.to_h { |name, value| [%i[wall cpu gc].include?(name) ? "#{name}_ns" : name.to_s, value] }
      end

      def rows(rows)
        rows.map do |row|
          { "name" => row.name, "self_ns" => row.own_ns, "total_ns" => row.total_ns, "compile_ns" => row.compile_ns,
            "objects" => row.objects, "files" => row.files }.compact
        end
      end

      def caches
        @boot.caches.map do |row|
          { "name" => row.name, "hits" => row.hits, "misses" => row.misses, "outcomes" => row.outcomes }
        end
      end

      def advice
        ruby = @summary.headers.first&.ruby&.fetch("version", nil)
        @boot.advice.map do |one|
          { "kind" => one.kind, "saving_ns" => one.saving_ns, "upper_bound" => one.bound, "subject" => one.subject,
            "path" => one.place&.first, "line" => one.place&.last,
            "text" => BootWords.advice(one, Location.new), "proof" => @hints.boot_proof(BootWords.setting(one, ruby)) }
        end
      end

      def features
        nodes = @limit ? @boot.nodes.first(@limit) : @boot.nodes
        numbers = {}.compare_by_identity
        nodes.each_with_index do |node, at|
          numbers[node] = at
        end
        nodes.map { |node| feature(node, numbers) }
      end

      # nil: can't be told, or was not recorded.
      def used(node) = @boot.uses.known? ? @boot.uses.used?(node) : nil

      def feature(node, numbers)
        load = node.row
        { "path" => node.path, "parent" => numbers[node.parent], "used" => used(node), "self_ns" => node.own[:wall],
          "total_ns" => node.total[:wall], "objects" => node.own[:objects], "bytes" => node.own[:bytes],
          "calls" => @boot.calls? ? node.own[:calls] : nil, "cached" => node.cached?, "kind" => node.kind,
          "name" => load.name,
          "from" => load.from, "line" => load.line, "at_ns" => load.at_ns, "thread" => load.thread,
          "self_cpu_ns" => node.own[:cpu], "total_cpu_ns" => node.total[:cpu], "compile_ns" => load.compile_ns,
          "gc_ns" => node.own[:gc], "rss" => node.own[:rss], "repeats" => load.repeats,
          "repeats_ns" => load.repeat_ns, "ending" => %w[loaded unfinished raised].fetch(load.ending, "unknown"),
          "total" => { "objects" => node.total[:objects], "bytes" => node.total[:bytes], "gc_ns" => node.total[:gc],
                       "rss" => node.total[:rss], "calls" => @boot.calls? ? node.total[:calls] : nil } }
      end
    end
  end
end
