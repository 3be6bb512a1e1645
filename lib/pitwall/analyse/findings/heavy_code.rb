# frozen_string_literal: true

module Pitwall
  module Analyse
    module Findings
      # With less CPU time, a recording is too short for findings.
      LEAST_NS = 50_000_000
      # Options of `pitwall report` for views of findings about CPU time.
      CPU = ["--only-mine", "--weight", "cpu"].freeze
      private_constant :CPU

      # A line of the application takes a large part of the CPU time, with its callees.
      # Leaves out lines that mostly collect garbage, because the rule Garbage covers them.
      module HeavyLine
        # Smallest share of the CPU time.
        SHARE = 0.25
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, _found)
          return [] if evidence.cpu < LEAST_NS

          candidates = evidence.lines.select { |line| line.line.positive? && line.gc * 2 < line.cpu }
          least = evidence.work_cpu * SHARE
          heavy = candidates.select { |line| line.cpu >= least && !evidence.boot?(line) }
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

      # All lines of a method together are heavy, but no single line is.
      module HeavyMethod
        # Smallest share of the CPU time.
        SHARE = 0.4
        private_constant :SHARE

        #: (Evidence, Array[Finding]) -> Array[Finding]
        def self.findings(evidence, found)
          return [] if evidence.cpu < LEAST_NS

          known = found.map { |finding| [finding.path, finding.method] }
          lines = evidence.lines.reject { |line| evidence.boot?(line) }
          methods = lines.group_by { |line| [line.path, line.method.name] }
          methods.reject! { |key, _| known.include?(key) || key.last.match?(/\A<(?:main|top)/) }
          (path, name), lines = methods.max_by { |key, group| [group.sum(&:cpu), key] }
          cpu = lines.to_a.sum(&:cpu)
          return [] if lines.nil? || cpu < evidence.work_cpu * SHARE

          view = lines.all? { |line| line.line.zero? } ? ["--callees", name] : ["--lines", path, *CPU]
          place = [path, lines.first.method.line, name]
          [evidence.finding(:heavy_method, place, cpu, whole: evidence.cpu, of: :cpu, view: view)]
        end
      end

      # A line repeatedly calls a C function that reads a whole array or string.
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
        # Smallest share of the CPU time.
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

      # Loading one library takes a large part of the loading time. For a server that did work, this finding is last. If
      # its requests are marked, it is left out, because no request waits for the boot.
      module Boot
        # Smallest share of the loading time.
        SHARE = 0.25
        # Smallest share of the running time.
        PART = 0.15
        # Name of a feature in its path: "…/gems/activerecord-8.1.1/lib/active_record/base.rb" → "active_record/base",
        # "/usr/lib/ruby/3.4.0/yaml.rb" → "yaml"
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
