# frozen_string_literal: true

module Pitwall
  module Fastboot
    # The gems that Bundler.require is going to load. Bundler asks each one for its `autorequire` when it is its turn:
    # the files to require, [] for none, nil for the gem's name.
    # @api private
    module BundledGems
      ASKER = %r{/bundler/runtime\.rb\z}
      ANSWERS = {}.compare_by_identity # Bundler::Dependency => a block
      private_constant :ASKER, :ANSWERS

      # Stands before Bundler::Dependency.
      module Asked
        def autorequire
          before = super
          block = BundledGems.block_for(self) or return before
          asker = caller_locations(1, 1)&.first&.path
          asker&.match?(ASKER) ? block.call(before) : before
        end
      end
      private_constant :Asked

      module_function

      # @return [Bundler::Definition, nil] nil: Bundler has not read the Gemfile
      def definition
        ::Bundler.instance_variable_get(:@definition) if defined?(::Bundler) && Object.autoload?(:Bundler).nil?
      end

      # Answers for the gem when Bundler.require asks.
      # @param dependency [Bundler::Dependency]
      # @yieldparam before what the Gemfile says
      # @yieldreturn what to answer
      def answer(dependency, &block)
        ::Bundler::Dependency.prepend(Asked)
        ANSWERS[dependency] = block
      end

      def block_for(dependency) = ANSWERS[dependency]
    end
  end
end
