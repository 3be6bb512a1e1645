# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # CPU time below which a recording is too short to tell.
      LEAST_NS = 50_000_000
      # Lines as findings about CPU time count them.
      CPU = ["--only-mine", "--weight", "cpu"].freeze
      private_constant :CPU

      # A line of the application that a large part of the CPU time goes to, with what it calls. Where most of that is
      # collection, Garbage tells.
      module HeavyLine
        SHARE = 0.25
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          return [] if evidence.cpu < LEAST_NS

          least = evidence.work_cpu * SHARE
          heavy = evidence.lines.select { |line| line.line.positive? && line.cpu >= least && line.gc * 2 < line.cpu && !evidence.boot?(line) }
          heavy.sort_by { |line| [-line.cpu, line.path, line.line] }.first(2).map { |line| finding(evidence, line) }
        end

        def self.finding(evidence, line)
          name, most = line.below.max_by { |below, cpu| [cpu, below] }
          evidence.finding(:heavy_line, line.place, line.cpu, whole: evidence.cpu, of: :cpu,
                           view: ["--lines", line.path, *CPU],
                           subject: (name if most.to_i * 2 >= line.cpu && line.below.any?))
        end
        private_class_method :finding
      end

      # A method whose lines together are heavy, where no line of it is.
      module HeavyMethod
        SHARE = 0.4
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, found)
          return [] if evidence.cpu < LEAST_NS

          told = found.map { |finding| [finding.path, finding.method] }
          methods = evidence.lines.reject { |line| evidence.boot?(line) }.group_by { |line| [line.path, line.method.name] }
          methods.reject! { |key, _| told.include?(key) || key.last.match?(/\A<(?:main|top)/) }
          (path, name), lines = methods.max_by { |key, group| [group.sum(&:cpu), key] }
          cpu = lines.to_a.sum(&:cpu)
          return [] if lines.nil? || cpu < evidence.work_cpu * SHARE

          view = lines.all? { |line| line.line.zero? } ? ["--callees", name] : ["--lines", path, *CPU]
          place = [path, lines.first.method.line, name]
          [evidence.finding(:heavy_method, place, cpu, whole: evidence.cpu, of: :cpu, view: view)]
        end
      end

      # One line calls, again and again, a C function that goes through a whole array or string.
      module RepeatedScan
        SCANS = %w[
          Array#include? Array#index Array#find_index Array#rindex Array#delete Array#delete_at
          Array#insert Array#unshift Array#- Array#+ Array#| Array#& Array#uniq Array#flatten Array#concat
          Array#dup Array#count Array#min Array#max Array#sum Array#assoc Array#compact Array#reverse
          Array#sort Array#union Array#difference Enumerable#include? Range#include? Hash#value? Hash#key
          Hash#merge Hash#dup Hash#to_a String#<< String#+ String#concat String#include? String#index
          String#insert String#prepend String#slice! String#sub String#sub! String#gsub String#[] String#*
          String#dup Kernel#dup Kernel#clone
        ].freeze
        SHARE = 0.25
        private_constant :SCANS, :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          return [] if evidence.cpu < LEAST_NS

          least = evidence.work_cpu * SHARE
          scans = evidence.lines.reject { |line| evidence.boot?(line) }.flat_map do |line|
            scans = line.inner.select { |name, cpu| SCANS.include?(name) && line.below.key?(name) && cpu >= least }
            scans.map { |name, cpu| [line, name, cpu] }
          end
          scans.max_by(1) { |_, _, cpu| cpu }.map do |line, name, cpu|
            view = line.line.zero? ? ["--callees", line.method.name] : ["--lines", line.path, *CPU]
            evidence.finding(:repeated_scan, line.place, cpu, whole: evidence.cpu, of: :cpu, subject: name,
                             view: view, impact: line.cpu.fdiv([evidence.work, 1].max))
          end
        end
      end

      # Loading one library takes much of what all loading takes. Of a server that has served it comes last, and where
      # requests are marked it is no finding: nobody waits for the boot.
      module Boot
        SHARE = 0.25
        # Of the recording: what is loaded quickly is no matter.
        PART = 0.15
        # "…/gems/activerecord-8.1.1/lib/active_record/base.rb" → "active_record/base", "/usr/lib/ruby/3.4.0/yaml.rb" → "yaml"
        FEATURE = %r{.*/(?:lib|ruby/(?:vendor_ruby|site_ruby)(?:/\d[^/]*)?|ruby/\d[^/]*)/(.+)\.\w+\z}.freeze
        private_constant :SHARE, :PART, :FEATURE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          return [] if evidence.loading < LEAST_NS || (evidence.served? && evidence.marked?)

          loads = evidence.lines.flat_map { |line| line.features.map { |path, ns| [line, path, ns] } }
          least = [evidence.loading * SHARE, evidence.running * PART, LEAST_NS].max
          loads.select { |_, _, ns| ns >= least }.max_by(2) { |_, path, ns| [ns, path] }.map do |line, path, ns|
            found = evidence.finding(:boot, line.place, ns, whole: evidence.loading, of: :boot, view: ["--tree"],
                                     subject: path[FEATURE, 1] || File.basename(path, ".rb"))
            found.impact = 0 if evidence.served?
            found
          end
        end
      end
    end
  end
end
