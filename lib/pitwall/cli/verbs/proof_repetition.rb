# frozen_string_literal: true

require "tempfile"
require "pitwall/analyse"
require "pitwall/cli/measuring/repeated_command"
require "pitwall/cli/verbs/compare"
require "pitwall/errors"
require "pitwall/record/proof"
require "pitwall/show"

module Pitwall
  module CLI
    # Measures a commit's proof again.
    class ProofRepetition
      # `pitwall compare` that keeps its report instead of showing it.
      class Comparison < Compare
        # @return [Analyse::ComparisonReport]
        attr_reader :report

        #: () -> String
        def self.verb = "compare"

        # @param text a file with the content of the benchmark file; nil: the file itself
        #: (out: IO, err: IO, ?text: String?) -> void
        def initialize(out:, err:, text: nil)
          super(out: out, err: err)
          @text = text
        end

        private

        def workspace_settings = super.merge(script_text: @text)

        def script(path) = @text ? File.expand_path(path) : super

        def conclude(report)
          @report = report
          raise @failure if @failure

          Status::OK
        end
      end
      private_constant :Comparison

      # Options that a proof's command can't have: they write files.
      WRITING = %w[--record --out].freeze
      private_constant :WRITING

      # @return [Record::Proof]
      attr_reader :proof
      # @return [Array<String>] what differs from when the proof was made
      attr_reader :notes
      # @return [Analyse::ComparisonReport] of the last call
      attr_reader :report

      #: (Workspace::Commits, Workspace::Commits::Commit, Record::Proof, out: IO, err: IO) -> void
      def initialize(commits, commit, proof, out:, err:)
        @commits = commits
        @repository = commits.repository
        @commit = commit
        @proof = proof
        @out = out
        @err = err
        @notes = []
      end

      # Measures. The command of the proof runs, with the trees as commits where commits have them.
      # @param budget [Float, nil] seconds for each case
      # @raise [BadRecording] the proof's command is none
      # @raise [CannotMeasure] a tree or the benchmark isn't here
      #: (budget: Float?) -> Analyse::ProofCheck
      def call(budget:)
        folder, words = command
        revisions = { @proof.base => base, @proof.tree => @commit.id }
        words = words.drop(2).map { |word| revisions.fetch(word, word) }
        # After the proof's own budget, so that it counts.
        words.insert(words.index("--") || words.size, "--budget", budget.to_s) if budget
        with_benchmark { |text| measure(folder, words, text) }
        note_environment
        Analyse::ProofCheck.new(@proof.claims, @report.effects)
      end

      private

      def measure(folder, words, text)
        comparison = Comparison.new(out: @out, err: @err, text: text)
        dir = File.join(@repository.top, folder)
        raise CannotMeasure, "#{folder}: no such folder here, and the proof was measured in it" unless Dir.exist?(dir)

        line = RepeatedCommand.line(%w[pitwall compare] + words, folder: folder)
        @err.puts("pitwall: runs #{Show::Text.line(line)}")
        Dir.chdir(dir) { comparison.call(words) }
        @report = comparison.report
      end

      def command
        folder, words = RepeatedCommand.parse(@proof.command)
        options = words.to_a.take_while { |word| word != "--" }
        fine = words && [@proof.base, @proof.tree].all? { |tree| options.include?(tree) } &&
               options.none? { |word| WRITING.include?(word[/\A--[^=]+/]) } && !folder.split("/").include?("..")
        return [folder, words] if fine

        raise BadRecording, "#{@commit.id[0, 10]}: its #{Record::Proof::KEY}Command doesn't compare its two trees"
      end

      # The revision that the commit is compared with.
      def base
        parent = @commit.parents.first
        if @commit.tree != @proof.tree
          @notes << "the commit's files are others than those that were measured (it was rebased or amended): " \
                    "it was measured as it is now, against its parent"
          return present(parent, "commit", "its parent") if parent

          raise CannotMeasure, "#{@commit.id[0, 10]}: its files aren't those of its proof, and it has no parent"
        end

        return parent if parent && @repository.id(parent, "tree") == @proof.base

        present(@proof.base, "tree", "the tree that it was compared with")
      end

      def present(id, kind, what)
        return id if @repository.id(id, kind)

        raise CannotMeasure, "#{@commit.id[0, 10]}: #{what} (#{id[0, 10]}) isn't in this repository" \
                             "#{@commits.shallow || ": fetch the branch that has it"}"
      end

      # Yields a file with the benchmark as it was measured; nil where the working tree has it.
      def with_benchmark
        path, blob = @proof.benchmark
        return yield(nil) if path.nil? || @repository.blob(File.join(@repository.top, path), path) == blob

        unless @repository.id(blob, "blob")
          raise CannotMeasure, "#{path}: is another than the one that was measured, which this repository doesn't have"
        end

        Tempfile.create(["pitwall-benchmark", File.extname(path)]) do |file|
          file.close
          @commits.extract(blob, file.path)
          @notes << "#{path} was taken as it was measured; the working tree has another"
          yield file.path
        end
      end

      def note_environment
        here = Show::ProofTrailers.environment(@report, VERSION)
        return if here == @proof.environment

        @notes << "measured elsewhere: #{@proof.environment} then, #{here} now"
      end
    end
  end
end
