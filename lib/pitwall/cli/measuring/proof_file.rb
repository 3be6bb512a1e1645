# frozen_string_literal: true

require "pitwall/cli/measuring/saved_measurement"
require "pitwall/errors"
require "pitwall/record/measurements"
require "pitwall/show"

module Pitwall
  module CLI
    # A file of a comparison as the source of a proof.
    class ProofFile
      # Files that are looked at, the newest first.
      MOST = 200
      # An id of git.
      ID = /\A\h{40}(?:\h{24})?\z/.freeze
      private_constant :MOST, :ID

      class << self
        # The comparisons that `compare` kept in folders, the newest first.
        #: (Array[String]) -> Array[ProofFile]
        def in(folders)
          paths = folders.flat_map { |folder| Dir[File.join(folder, "*.jsonl")] }.uniq
          paths = paths.sort_by { |path| [-File.mtime(path).to_r, path] }.first(MOST)
          paths = paths.select { |path| Record::Measurements.file?(path) }
          files = paths.map { |path| new(path.delete_prefix("#{Dir.pwd}/")) }
          files.select { |file| file.comparison? && !file.confirmation? }
        rescue SystemCallError
          []
        end

        # @raise [UsageError] no comparison
        #: (String) -> ProofFile
        def at(path)
          raise UsageError, "#{path}: no such file" unless File.file?(path)
          unless Record::Measurements.file?(path)
            raise UsageError, "#{path}: holds no measurements: name a file that pitwall compare wrote (--record)"
          end

          file = new(path)
          return file if file.read["kind"] == "compare"

          raise UsageError, "#{path}: is of bench, which measures one side: a proof needs two, pitwall compare"
        end
      end

      # @return [String]
      attr_reader :path

      # @api private
      #: (String) -> void
      def initialize(path)
        @path = path
      end

      # The first line.
      # @raise [BadRecording]
      #: () -> Hash[String, untyped]
      def read = @read ||= Record::Measurements.head(@path)

      # Whether it is the second run of a gate, which only confirms another file.
      #: () -> bool
      def confirmation? = read.key?("confirms")

      # Whether it is a readable comparison.
      #: () -> bool
      def comparison?
        read["kind"] == "compare"
      rescue BadRecording
        false
      end

      #: () -> Analyse::ComparisonReport
      def report = @report ||= SavedMeasurement.new([@path]).report

      # The Pitwall that measured.
      #: () -> String?
      def version = read["pitwall"]&.to_s

      # What repeats the comparison; nil unless it is of two trees alone.
      #: () -> Hash[String, untyped]?
      def repeat
        found = read["repeat"]
        return unless found.is_a?(Hash) && found["command"].is_a?(String)

        trees = found["trees"]
        found if trees.is_a?(Array) && trees.size == 2 && trees.all? { |tree| tree.is_a?(String) && tree.match?(ID) }
      end

      # Whether the side that was compared with the base has the files of a tree. The benchmark file may differ: the
      # measured one is known by its content.
      #: (String, Workspace::Repository) -> bool
      def of?(tree, repository)
        known = repeat or return false
        known["trees"].last == tree || known["listing"] == listing(tree, repository)
      end

      # Whether the base is a tree.
      #: (String) -> bool
      def base?(tree) = repeat&.fetch("trees")&.first == tree

      # Whether uncommitted changes were measured.
      #: () -> bool
      def uncommitted? = Array(read["sides"]).last.to_h.dig("facts", "changes") == "uncommitted"

      # The trailers.
      # @param tree the tree that is named as the side's; nil: the measured one
      # @raise [UsageError] a proof of this comparison can't be repeated
      # @raise [Unproved] the comparison decided nothing
      #: (?String?) -> Array[[String, String]]
      def trailers(tree = nil)
        known = repeat or raise UsageError, "#{@path}: #{unrepeatable}"
        if known["command"].include?("\n")
          raise UsageError, "#{@path}: its command has several lines, a trailer has one: put the code into a file"
        end
        if Show::ProofTrailers.claimed(report).all? { |effect| Show::EffectWords.verdict(effect) == :undecided }
          raise Unproved, "#{@path}: undecided, so nothing is proved; pitwall report #{@path} says what is missing"
        end

        Show::ProofTrailers.new(report, named(known, tree), version: version).pairs
      end

      private

      # The comparison has decided nothing.
      class Unproved < Error
        def status = Status::UNDECIDED
      end

      def named(known, tree)
        return known if tree.nil?

        measured = known["trees"].last
        known.merge("trees" => [known["trees"].first, tree], "command" => known["command"].gsub(measured, tree))
      end

      def listing(tree, repository)
        benchmark = known_benchmark
        (@listings ||= {})[tree] ||= repository.listing(tree, except: benchmark)
      rescue Workspace::Git::Failed
        nil
      end

      def known_benchmark = repeat["benchmark"].is_a?(Hash) ? repeat["benchmark"]["path"] : nil

      def unrepeatable
        return "made by an older Pitwall: measure again" unless read.key?("repeat")

        "a commit's proof compares two revisions, or HEAD with the working tree, that differ in nothing else " \
          "(--format json, markdown and junit show any comparison)"
      end
    end
  end
end
